"""One update of a policy, in several forms: time, operations, launches, waits of the host, and memory.

    python -m benchmarks.gpu.update [--model smollm2-shape] [--forms learner scorer compiled plain]
    python -m benchmarks.gpu.update --model qwen-shape --groups 4 --prompt 1000 --new 131 --forms learner
    python -m benchmarks.gpu.update --twice

Groups of 8 random completions share a random prompt; weights are random too. The forms:

    learner     ``Learner.update`` with DeepSpeed, as a training makes it
    scorer      the same passes and loss, with float32 masters and AdamW, without DeepSpeed
    compiled    the form ``scorer`` with every layer compiled
    plain       what a trainer without shared prompts does: whole sequences in one pass, float32 weights under
                autocast

Operations and synchronisations are those of ``benchmarks.operations``. Launches and the share of time in
which the GPU is busy come from torch's profiler. ``--twice`` makes the same updates from the same start
twice, and compares the bytes of the weights. A form that fails says why. Prints JSON.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch.profiler import DeviceType, ProfilerActivity, profile

from benchmarks.device import add_options, device_name, finish, most_held
from benchmarks.grpo_step.ours import make_grpo
from benchmarks.grpo_step.setting import GROUP, LEARNING_RATE, Place
from benchmarks.operations import Counts
from benchmarks.shapes import SHAPES, random_policy
from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import Step
from skillpress.experiment.estimate import memory_by_phase, training_memory
from skillpress.experiment.params import load_params
from skillpress.models.policy import Policy
from skillpress.models.policy.compiled_layers import compile_layers
from skillpress.models.policy.precision import MasterWeights
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import Scorer
from skillpress.models.policy.tree_scoring import TreeScorer
from skillpress.pipeline.reproduce.dry_run import shape_of
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.model_pass import passes, scored
from skillpress.training.loop.optimizer import AdamW, read_configuration
from skillpress.training.loop.policy_loss import PolicyLoss

Update = Callable[[], None]
COUNTS = ("operations", "synchronisations", "launches")
MEMORY = {
    "peak_bytes": "at the peak",
    "peak_reserved_bytes": "reserved",
    "held_bytes": "held",
    "reserved_bytes_after_emptying": "reserved after emptying",
}
"""Figures of a form to their words in the summary."""
WHOLE = 1 << 20
"""A limit of tokens that no update here reaches: it is one pass."""
WARM_UP = 2


@dataclass(frozen=True)
class Sizes:
    """What an update learns from."""

    model: str
    groups: int
    prompt: int
    new: int
    repeats: int
    backend: str
    """The compiler's."""

    @property
    def tokens(self) -> int:
        """Tokens of the update, shared prompts once."""
        return self.groups * (self.prompt + GROUP * self.new)

    def batch(self, vocabulary: int) -> Batch:
        """Random completions, whose advantages alternate."""
        random = np.random.default_rng(0)

        def tokens(count: int) -> tuple[int, ...]:
            return tuple(random.integers(4, vocabulary, count).tolist())

        prompts = [tokens(self.prompt) for _ in range(self.groups)]
        logprobs = as_logprobs((-float(np.log(vocabulary)),) * self.new)
        steps = tuple(
            Step(
                prompt_ids=prompt,
                response_ids=tokens(self.new),
                logprobs=logprobs,
                thought="",
                action="",
                observation="",
                invalid=None,
                reward_parts=(),
            )
            for prompt in prompts
            for _ in range(GROUP)
        )
        advantages = np.where(np.arange(len(steps)) % 2, 1.0, -1.0)
        weights = np.full(len(steps), 1 / (len(steps) * self.new))
        return Batch.of_steps(steps, advantages=advantages, weights=weights)


def by_learner(policy: Policy, batch: Batch, place: Place, sizes: Sizes) -> Update:
    """Our learner."""
    if not torch.distributed.is_initialized():
        join_ranks(Ranks(), free_port())
    optimizer = AdamW(LEARNING_RATE, configuration=place.configuration)
    passing = Passing(1.0, WHOLE, compile="auto")
    learner = Learner(policy.model, [PolicyLoss(make_grpo())], optimizer, passing, Ranks())

    def update() -> None:
        learner.update(batch)

    return update


def by_scorer(policy: Policy, batch: Batch, place: Place, sizes: Sizes) -> Update:
    """Our passes and loss alone."""
    return _by(choose_scorer(policy.model), batch, place)


def _by(scorer: Scorer, batch: Batch, place: Place) -> Update:
    algorithm = make_grpo()
    masters = MasterWeights(scorer.parameters())
    optimizer = AdamW(LEARNING_RATE).over(cast("list[torch.nn.Parameter]", masters.masters))

    def update() -> None:
        for each in passes(batch, WHOLE, place.device, scorer.shares_prompts):
            logprobs, _ = scorer(each.responses, 1.0)
            algorithm.loss(scored(each.batch, logprobs))[0].backward()
            masters.take_gradients()
        _step(optimizer, masters.masters)
        masters.give_weights()

    return update


def compiled(policy: Policy, batch: Batch, place: Place, sizes: Sizes) -> Update:
    """Our passes over trees, with compiled layers."""
    scorer = choose_scorer(policy.model)
    if not isinstance(scorer, TreeScorer):  # on a CPU
        scorer = TreeScorer(policy.model)
    if (reason := compile_layers(scorer, backend=sizes.backend)) is not None:
        raise RuntimeError(reason)
    return _by(scorer, batch, place)


def plain(policy: Policy, batch: Batch, place: Place, sizes: Sizes) -> Update:
    """Whole sequences in one pass."""
    model = torch.nn.Module.to(policy.model, dtype=torch.float32)
    rows = torch.tensor([prompt + response for prompt, response in batch.pairs.rows], device=place.device)
    advantages = torch.tensor(batch.advantages, dtype=torch.float32, device=place.device)
    advantages = advantages.reshape(len(rows), -1)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = AdamW(LEARNING_RATE).over(weights)

    def update() -> None:
        with torch.autocast(place.device.type, torch.bfloat16, enabled=place.dtype == "bfloat16"):
            logits = model(input_ids=rows, logits_to_keep=sizes.new + 1).logits[:, :-1]
        targets = rows[:, -sizes.new :]
        logprobs = logits.float().log_softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
        ratios = (logprobs - logprobs.detach()).exp()
        (-(ratios * advantages).mean()).backward()
        _step(optimizer, weights)

    return update


def _step(optimizer: torch.optim.Optimizer, weights: list[Any]) -> None:
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    optimizer.zero_grad()


FORMS: dict[str, Callable[[Policy, Batch, Place, Sizes], Update]] = {
    "learner": by_learner, "scorer": by_scorer, "compiled": compiled, "plain": plain,
}  # fmt: skip


def start(form: str, sizes: Sizes, place: Place) -> tuple[Policy, Update]:
    """The policy at its start, and an update of it."""
    policy = random_policy(sizes.model, place.dtype)
    torch.nn.Module.to(policy.model, place.device)
    return policy, FORMS[form](policy, sizes.batch(policy.vocabulary), place, sizes)


def measure(form: str, sizes: Sizes, place: Place) -> dict[str, Any]:
    """The figures of a form."""
    _, update = start(form, sizes, place)
    for _ in range(WARM_UP):
        update()
    seconds = []
    for _ in range(sizes.repeats):
        began = place.now()
        update()
        seconds.append(place.now() - began)
    found = {
        "milliseconds": round(1000 * statistics.median(seconds), 2),
        **(_counted(update) if form != "compiled" else {}),  # counting runs its layers uncompiled
        **_profiled(update, place.device),
        **_memory(place.device),
    }
    del update
    return found


def _counted(update: Update) -> dict[str, int]:
    """Operations, and calls in which the host waits."""
    counts = Counts().of(update)
    return {"operations": counts.operations.total(), "synchronisations": counts.synchronisations.total()}


def _profiled(update: Update, device: torch.device) -> dict[str, Any]:
    """Launches, and the share of time in which a GPU works; nothing on a CPU."""
    if device.type != "cuda":
        return {}
    began = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        update()
        finish(device)
    seconds, events = time.perf_counter() - began, seen.events() or []
    busy = sum(event.time_range.elapsed_us() for event in events if event.device_type == DeviceType.CUDA)
    names = Counter(event.name for event in events)
    return {
        "launches": sum(count for name, count in names.items() if "LaunchKernel" in name),
        "waits": sum(count for name, count in names.items() if "Synchronize" in name),
        "busy_share_while_profiled": round(busy / 1e6 / seconds, 3),
    }


def _memory(device: torch.device) -> dict[str, int]:
    """Peaks, and on a GPU what is free before and after torch gives back what it can."""
    if device.type != "cuda":
        return {"peak_bytes": most_held(device)}
    before, _ = torch.cuda.mem_get_info(device)
    reserved, held = torch.cuda.max_memory_reserved(device), torch.cuda.memory_allocated(device)
    torch.cuda.empty_cache()
    after, _ = torch.cuda.mem_get_info(device)
    return {
        "peak_bytes": most_held(device),
        "peak_reserved_bytes": reserved,
        "held_bytes": held,
        "free_bytes_before_emptying": before,
        "free_bytes_after_emptying": after,
        "reserved_bytes_after_emptying": torch.cuda.memory_reserved(device),
    }


def estimated(sizes: Sizes, place: Place) -> int:
    """Bytes of the estimate of ``--dry-run`` for the form ``learner``, without an engine."""
    params = load_params("params.yaml")
    changes: dict[str, dict[str, Any]] = {
        "policy": {"context_tokens": sizes.prompt, "dtype": place.dtype},
        "sampling": {"max_new_tokens": sizes.new},
        "training": {"microbatch_tokens": sizes.tokens},
    }
    sections = {name: getattr(params, name).model_copy(update=keys) for name, keys in changes.items()}
    with torch.device("meta"):
        policy = random_policy(sizes.model, place.dtype)
    parts = training_memory(
        params.model_copy(update={"processes": 1, **sections}),
        shape_of(policy.model.config, policy.parameters),
        read_configuration(place.configuration),
    )
    parts = {part: size for part, size in parts.items() if not part.startswith("engine: ")}
    return memory_by_phase(parts, sleeps=True, on_gpu=place.device.type == "cuda")["updating"]


def twice(form: str, sizes: Sizes, place: Place) -> dict[str, Any]:
    """Digests of the weights after the same updates from the same start."""
    found = []
    for _ in range(2):
        policy, update = start(form, sizes, place)
        for _ in range(WARM_UP):
            update()
        said = hashlib.sha256()
        for weight in policy.model.parameters():
            said.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        found.append(said.hexdigest()[:16])
        del policy, update
        release()
    return {"digests": found, "equal": found[0] == found[1]}


def release() -> None:
    """Give back the memory of a form that is over, and begin its peaks again."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def tried(work: Callable[[str, Sizes, Place], dict[str, Any]], *given: Any) -> dict[str, Any]:
    """A form's figures, or why there are none: the other forms are measured all the same."""
    try:
        return work(*given)
    except (RuntimeError, ImportError) as error:
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    finally:
        release()


def summary(forms: dict[str, dict[str, Any]]) -> str:
    """The figures in a line."""

    def said(found: dict[str, Any]) -> str:
        if "failed" in found:
            return str(found["failed"])
        if "equal" in found:
            return "equal bytes" if found["equal"] else "other bytes"
        counts = [f"{found[name]} {name}" for name in COUNTS if name in found]
        sizes = [f"{found[key] / 1e9:.1f} GB {words}" for key, words in MEMORY.items() if key in found]
        return ", ".join([f"{found['milliseconds']} ms", *counts, *sizes])

    return "; ".join(f"{form}: {said(found)}" for form, found in forms.items())


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*SHAPES], default="smollm2-shape")
    parser.add_argument("--forms", nargs="+", choices=[*FORMS], default=[*FORMS])
    parser.add_argument("--groups", type=int, default=16, help="groups of 8 completions")
    parser.add_argument("--prompt", type=int, default=200, help="tokens of a prompt")
    parser.add_argument("--new", type=int, default=32, help="tokens of a completion")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    parser.add_argument("--twice", action="store_true", help="compare two runs' weights")
    add_options(parser)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    place = Place(torch.device(chosen.device), chosen.dtype)
    sizes = Sizes(
        model=chosen.model, groups=chosen.groups, prompt=chosen.prompt, new=chosen.new,
        repeats=chosen.repeats, backend=chosen.backend,
    )  # fmt: skip
    work = twice if chosen.twice else measure
    forms = {form: tried(work, form, sizes, place) for form in chosen.forms}
    bound = estimated(sizes, place)
    print(json.dumps({
        "summary": f"{summary(forms)}; --dry-run's bound for the learner: {bound / 1e9:.1f} GB",
        "forms": forms,
        "tokens": sizes.tokens,
        "estimated_bytes": bound,
        "setting": {**vars(chosen), "device": device_name(place.device), "torch": torch.__version__},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
