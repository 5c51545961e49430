"""One GRPO optimizer step against TRL's, on the same model, prompts, completions and tokens.

    python -m benchmarks.grpo_step [--model default|3m|smollm2] [--steps 6]

Both sides sample completions of exactly 32 tokens after prompts of about 200 tokens, in groups of 8 that
share a prompt, and make one optimizer step on them: float32, one thread, no KL term, temperature 1,
AdamW, the same learning rate; 64 completions, or 16 with SmolLM2-135M. The reward is a number drawn from a
completion's tokens, so that every group has advantages and nothing is skipped. Ours samples with the
local engine and trains with DeepSpeed (ZeRO 1, one process); TRL's is ``GRPOTrainer`` with
``use_cpu=True`` and otherwise its defaults. The two take turns, each in processes of its own. The results
are the ratios of their median seconds per step and per update (the step without sampling and rewards),
the tokens per second of an update (prompts counted once per completion on both sides), and the most
memory that a side's process has held.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
import transformers
import trl

from skillpress.algorithms.batch import batch_of, one_process
from skillpress.algorithms.grpo import GRPO, GRPOParameters
from skillpress.algorithms.selections.none import NoSelection, NoSelectionParameters
from skillpress.engines.local.engine import LocalEngine
from skillpress.interface import Sampling, ScratchVocabulary
from skillpress.policy import Policy, load_policy, save_policy
from skillpress.policy.pretrained import SMOLLM2, load_pretrained
from skillpress.policy.scratch import build_scratch_policy
from skillpress.training.learner import Learner
from skillpress.training.optimizer import AdamW
from skillpress.training.samples import Samples
from skillpress.trajectory import RewardPart, Step, Trajectory
from skillpress.workers.distributed import Ranks, free_port, join_ranks

RESPONSE, GROUP = 32, 8


@dataclass(frozen=True)
class Setting:
    """A model and what it is trained on."""

    shape: tuple[int, int, int] | None
    """Width, layers, heads of a scratch policy; None is SmolLM2-135M."""
    numbers: int
    """In a prompt, below 1000; a word each for a scratch policy, four tokens for SmolLM2."""
    groups: int


SETTINGS = {
    "default": Setting((64, 2, 2), 200, 8),
    "3m": Setting((192, 6, 6), 200, 8),
    "smollm2": Setting(None, 50, 2),
}
"""``default`` is the policy of params.yaml."""
LEARNING_RATE = 1e-5
WARM_UP = 2
"""Steps of each process that do not count."""


def make_policy(setting: Setting) -> Policy:
    """The pretrained policy, or one of a thousand numbers; what ends a response is hardly ever drawn."""
    if setting.shape is None:
        policy = load_pretrained(SMOLLM2, "float32")
        policy.tokenizer.chat_template = None  # TRL puts none around a prompt of text either
        policy.tokenizer.eos_token = "<|endoftext|>"
        return policy
    numbers = {str(number): number for number in range(1000)}
    vocabulary = ScratchVocabulary((*numbers, "stop"), ("stop",), numbers, setting.numbers)
    return build_scratch_policy(vocabulary, *setting.shape, response_words=RESPONSE, seed=0)


def make_prompts(setting: Setting, step: int) -> list[str]:
    """The prompts of one step, one per group."""
    random = np.random.default_rng(step)
    return [" ".join(map(str, random.integers(100, 1000, setting.numbers))) for _ in range(setting.groups)]


def reward(token_ids: list[int]) -> float:
    """Something that differs between completions."""
    return float(np.mean(token_ids) % 10)


class Ours:
    """Sample with the local engine, update with DeepSpeed."""

    def __init__(self, policy: Policy, setting: Setting) -> None:
        self.setting = setting
        self.update_seconds: list[float] = []
        ranks = Ranks()
        join_ranks(ranks, free_port())
        self.policy = policy
        self.engine = LocalEngine(policy)
        self.engine.stop = torch.tensor([], dtype=torch.long)  # exactly RESPONSE tokens, as TRL's side
        everything = NoSelectionParameters(name="none")
        section = GRPOParameters(
            name="grpo",
            scale="std",
            baseline_weighting="per_trajectory",
            clip_low=0.2,
            clip_high=0.2,
            kl_coefficient=0.0,
            aggregation="token_mean",
            importance="none",
            importance_cap=2.0,
            select=everything,
        )
        self.grpo = GRPO(section, NoSelection(everything))
        self.learner = Learner(
            policy.model, self.grpo.loss, "zero1_fp32", AdamW(LEARNING_RATE), 1.0, 1 << 20, ranks
        )
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        prompts = [
            ids for ids in self.policy.encode(make_prompts(self.setting, self.steps)) for _ in range(GROUP)
        ]
        seeds = [self.steps * 1000 + row for row in range(len(prompts))]
        completions = self.engine.generate(prompts, Sampling(max_new_tokens=RESPONSE), seeds)
        returns = np.array([reward(list(c.token_ids)) for c in completions])
        started = time.perf_counter()
        groups = np.repeat(np.arange(self.setting.groups), GROUP)
        steps = tuple(
            Step(prompt, c.token_ids, c.logprobs, "", "", "", None, (RewardPart("success", r, "trajectory"),))
            for prompt, c, r in zip(prompts, completions, returns.tolist(), strict=True)
        )
        episodes = [Trajectory("", "", 0, (step,), False, True, False, "", 0, 0) for step in steps]
        advantages = self.grpo.advantages(batch_of(episodes, groups.tolist(), 1.0), one_process)
        lengths = np.array([len(step.response_ids) for step in steps])
        assert lengths.tolist() == [RESPONSE] * len(steps)
        weights = self.grpo.token_weights(lengths, float(lengths.sum()), float(len(steps)))
        self.learner.update(Samples(steps, advantages, weights))
        self.update_seconds.append(time.perf_counter() - started)
        self.engine.update_weights(self.learner.weights(), self.steps)


class Clock(transformers.TrainerCallback):
    """Seconds of each of a trainer's steps, sampling included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.last = time.perf_counter()

    def on_train_begin(self, *arguments: Any, **named: Any) -> None:
        self.last = time.perf_counter()

    def on_step_end(self, *arguments: Any, **named: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self.last)
        self.last = now


class TimedTrainer(trl.GRPOTrainer):  # type: ignore[misc]
    """TRL's trainer, which notes how long sampling and rewards take."""

    sampling = 0.0

    def _generate_and_score_completions(self, *arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        found = super()._generate_and_score_completions(*arguments, **named)
        self.sampling = time.perf_counter() - started
        return found


@dataclass(frozen=True)
class Timed:
    """One side's steps."""

    step: list[float]
    """Seconds of each."""
    update: list[float]
    """Seconds without sampling and rewards."""


def time_ours(setting: Setting, folder: Path, steps: int) -> Timed:
    """Our steps."""
    ours = Ours(load_policy(folder), setting)
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        ours.step()
        seconds.append(time.perf_counter() - started)
    return Timed(seconds, ours.update_seconds)


def time_trl(setting: Setting, folder: Path, steps: int) -> Timed:
    """TRL's steps."""
    clock, update = Clock(), []
    policy = load_policy(folder)
    assert policy.model.generation_config is not None
    policy.model.generation_config.eos_token_id = None
    if setting.shape is not None:
        policy.tokenizer.eos_token = "<pad>"
    rows = [prompt for step in range(1, steps + 1) for prompt in make_prompts(setting, step)]

    class AfterStep(transformers.TrainerCallback):
        def on_step_end(self, *arguments: Any, **named: Any) -> None:
            update.append(clock.seconds[-1] - trainer.sampling)

    with tempfile.TemporaryDirectory() as output:
        trainer = TimedTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            reward_funcs=lambda completion_ids, **named: [reward(ids) for ids in completion_ids],
            args=trl.GRPOConfig(
                output_dir=output,
                use_cpu=True,
                bf16=False,
                per_device_train_batch_size=setting.groups * GROUP,
                num_generations=GROUP,
                max_completion_length=RESPONSE,
                max_steps=steps,
                learning_rate=LEARNING_RATE,
                beta=0.0,
                temperature=1.0,
                top_k=0,
                shuffle_dataset=False,
                gradient_checkpointing=False,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                generation_kwargs={"min_new_tokens": RESPONSE, "eos_token_id": None},
            ),
            train_dataset=datasets.Dataset.from_dict({"prompt": rows}),
            callbacks=[clock, AfterStep()],
        )
        trainer.train()
    return Timed(clock.seconds, update)


SIDES = {"skillpress": time_ours, "trl": time_trl}


def compare(model: str, steps: int) -> dict[str, Any]:
    """Medians over the steps of both sides, each in processes of its own, in turn and twice.

    Separate processes: DeepSpeed's process group would make TRL's trainer a distributed one.
    """
    setting = SETTINGS[model]
    seconds: dict[str, dict[str, list[float]]] = {side: {"step": [], "update": []} for side in SIDES}
    peaks: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        policy = make_policy(setting)
        save_policy(policy, Path(folder) / "model")
        for side in [*SIDES] * 2:
            command = [sys.executable, "-m", "benchmarks.grpo_step", "--model", model, "--steps", str(steps)]
            command += ["--side", side, "--folder", str(Path(folder) / "model")]
            finished = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(finished.stdout.splitlines()[-1])
            for part, values in seconds[side].items():
                values += found[part][WARM_UP:]
            peaks[side] = max(peaks.get(side, 0), found["peak_bytes"])
    (prompt, *_) = policy.encode(make_prompts(setting, 1))
    tokens = setting.groups * GROUP * (len(prompt) + RESPONSE)
    step, update = (
        {side: statistics.median(seconds[side][part]) for side in SIDES} for part in ("step", "update")
    )
    return {
        "model": model,
        "parameters": policy.parameters,
        "steps": len(seconds["trl"]["step"]),
        "seconds_per_step": step,
        "trl_over_skillpress": step["trl"] / step["skillpress"],
        "seconds_per_update": update,
        "update_tokens_per_second": {side: tokens / update[side] for side in SIDES},
        "trl_over_skillpress_update": update["trl"] / update["skillpress"],
        "peak_bytes": peaks,
        "setting": {
            "completions": setting.groups * GROUP,
            "tokens": RESPONSE,
            "prompt": len(prompt),
            "group": GROUP,
            "dtype": "float32",
            "threads": 1,
        },
    }


def most_resident() -> int:
    """The most bytes this process has held."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*SETTINGS], default="default")
    parser.add_argument("--steps", type=int, default=6, help=f"of each process; the first {WARM_UP} warm up")
    parser.add_argument("--side", choices=[*SIDES], help="measure one side only, as --folder is for")
    parser.add_argument("--folder", type=Path, help="the model's")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # accelerate takes two threads where nobody says
    torch.set_num_threads(1)
    if chosen.side:
        timed = SIDES[chosen.side](SETTINGS[chosen.model], chosen.folder, chosen.steps)
        print(json.dumps({**asdict(timed), "peak_bytes": most_resident()}))
        return
    print(json.dumps({
        **compare(chosen.model, chosen.steps),
        "versions": {module.__name__: module.__version__ for module in (trl, transformers, torch)},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
