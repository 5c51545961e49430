"""Operations and host synchronisations of one update, counted on a CPU.

    python -m benchmarks.operations [--scorer tree] [--dtype bfloat16] [--layers 30] [--groups 16]
    python -m benchmarks.operations --layer [--dtype bfloat16]

A GPU computes a small model's operations faster than a host starts them, so their number decides how long an
update takes. It does not depend on the sizes of tensors. So the model has SmolLM2's 30 layers, 9 heads and 3
key heads, with vectors of 36 numbers. An update has 16 groups of 8 completions of 32 tokens after prompts of
199, as it had on the GPU. The first update creates the optimizer's state;
the second is counted: the passes, the loss, the backward pass, the optimizer and the metrics. The scorer is
the one of GPUs (``tree``, with dense masks, since FlexAttention has no backward pass on CPUs) or of CPUs.

    operations         calls of ATen that compute or move values, in either direction; views and empty
                       allocations start nothing on a device
    synchronisations   calls in which the host waits for the device: numbers read from a tensor, results whose
                       size depends on values, and copies from memory that is not pinned

``--layer`` counts one layer's passes, forwards and backwards, as they are and compiled
(``training.compile``). Of a compiled layer it counts matrix products, attention, the loops that torch's
compiler made of everything else, and the sums of gradients.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch._inductor.config as compiler
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.grpo_step.ours import make_grpo
from skillpress.core.trajectory import Step
from skillpress.models.policy.compiled_layers import compile_layers
from skillpress.models.policy.scoring import ResponseScorer, Scorer
from skillpress.models.policy.tree_scoring import TreeScorer
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop import learner as module
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.model_pass import passes
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss

GROUP, RESPONSE, PROMPT, VOCABULARY = 8, 32, 199, 512
SCORERS: dict[str, type[Scorer]] = {"tree": TreeScorer, "cached": ResponseScorer}
STARTS_NOTHING = {"aten::_unsafe_view", "aten::empty", "aten::empty_like", "aten::empty_strided",
                  "aten::new_empty", "aten::new_empty_strided", "aten::lift_fresh"}  # fmt: skip
"""Names of operations that only describe or allocate a tensor and that are not views by their schema."""
WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal"}
COPIES = {"tolist", "cpu", "tensor"}
"""Functions that wait for a copy between host and device; ``torch.tensor`` copies from pageable memory."""


@dataclass
class Counts:
    """What was counted."""

    operations: Counter[str] = field(default_factory=Counter)
    synchronisations: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    """Bytes that the operations read and write."""

    def of(self, work: Callable[[], object]) -> Counts:
        """Count the work's calls, and return this object."""
        with _Methods(self.synchronisations), Operations(self):
            work()
        return self


class Operations(TorchDispatchMode):
    """Counts ATen's operations, also those of backward passes."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, found = func._schema.name, func(*args, **(kwargs or {}))
        if not func.is_view and name not in STARTS_NOTHING:
            self._counts.operations[name] += 1
            tensors = [each for each in tree_leaves((args, kwargs, found)) if isinstance(each, torch.Tensor)]
            self._counts.bytes += sum(each.nbytes for each in tensors)
        if name in WAITS or _by_truth(name, args):
            self._counts.synchronisations[name] += 1
        return found


def _by_truth(name: str, arguments: Sequence[Any]) -> bool:
    """Whether a tensor is indexed by a Boolean one."""
    if not name.startswith("aten::index"):
        return False
    found = arguments[1] if isinstance(arguments[1], (list, tuple)) else ()
    return any(isinstance(each, torch.Tensor) and each.dtype == torch.bool for each in found)


class _Methods(TorchFunctionMode):
    """Counts copies between host and device, which a CPU does not count as operations."""

    def __init__(self, found: Counter[str]) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        # transformers makes empty tensors for its caches, which copy nothing.
        if name in COPIES and not (isinstance(found, torch.Tensor) and found.numel() == 0):
            self._found[name] += 1
        return found


def narrow_model(layers: int, dtype: torch.dtype) -> LlamaForCausalLM:
    """SmolLM2's shape with tiny widths."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=36, intermediate_size=96, num_hidden_layers=layers,
            num_attention_heads=9, num_key_value_heads=3, head_dim=4, max_position_embeddings=512,
            tie_word_embeddings=True,
        )
    )  # fmt: skip
    torch.nn.Module.to(model, dtype)
    return model


def make_batch(groups: int, seed: int) -> Batch:
    """Random completions of random prompts, with advantages."""
    random = np.random.default_rng(seed)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(random.integers(3, VOCABULARY, count).tolist())

    prompts = [tokens(PROMPT) for _ in range(groups)]
    steps = [_step(prompt, tokens(RESPONSE)) for prompt in prompts for _ in range(GROUP)]
    advantages = random.normal(size=len(steps))
    return Batch.of_steps(steps, advantages, np.full(len(steps), 1 / (len(steps) * RESPONSE)))


def _step(prompt: tuple[int, ...], response: tuple[int, ...]) -> Step:
    return Step(
        prompt_ids=prompt,
        response_ids=response,
        logprobs=np.full(RESPONSE, -np.log(VOCABULARY), np.float32),
        thought="",
        action="",
        observation="",
        invalid=None,
        reward_parts=(),
    )


def counts_of_update(layers: int, groups: int, dtype: str, scorer: type[Scorer] = TreeScorer) -> Counts:
    """The counts of the second update of a new learner."""
    join_ranks(Ranks(), free_port())
    configuration = "zero1_bf16" if dtype == "bfloat16" else "zero1_fp32"
    model = narrow_model(layers, getattr(torch, dtype))
    optimizer = AdamW(1e-5, configuration=configuration)
    with patch.object(module, "choose_scorer", scorer):
        learner = Learner(model, [PolicyLoss(make_grpo())], optimizer, Passing(1.0, 1 << 20), Ranks())
    learner.update(make_batch(groups, 0))
    batch = make_batch(groups, 1)
    return Counts().of(lambda: learner.update(batch))


def counts_of_layer(dtype: str) -> dict[str, int]:
    """Operations of one layer's passes, as they are and compiled: what a second layer adds."""
    eager, compiled = [], []
    compiler.cpp.enable_kernel_profile = True  # the profiler sees the compiler's loops by their names
    for layers in (1, 2):
        scorer = _tree_scorer(layers, dtype)
        _make_passes(scorer)  # afterwards gradients are added to others, as in training
        eager.append(Counts().of(partial(_make_passes, scorer)).operations.total())
        torch._dynamo.reset()
        if (reason := compile_layers(scorer)) is not None:
            raise SystemExit(f"a layer cannot be compiled here: {reason}")
        _make_passes(scorer)
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            _make_passes(scorer)
        compiled.append(sum(_starts(event.name) for event in seen.events() or []))
    return {"eager": eager[1] - eager[0], "compiled": compiled[1] - compiled[0]}


def _tree_scorer(layers: int, dtype: str) -> TreeScorer:
    return TreeScorer(narrow_model(layers, getattr(torch, dtype)))


def _make_passes(scorer: TreeScorer) -> None:
    for each in passes(make_batch(2, 0), 1 << 20, "cpu", shared=True):
        scorer(each.responses, 1.0)[0].sum().backward()


def _starts(name: str) -> bool:
    """Whether an event of the profiler is work of a compiled layer or of its gradients' sums."""
    return "_cpp_fused_" in name or "scaled_dot" in name or name in ("aten::mm", "aten::add_")


def main() -> None:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scorer", choices=[*SCORERS], default="tree")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--groups", type=int, default=16, help=f"groups of {GROUP} completions")
    parser.add_argument("--layer", action="store_true", help="count one layer, as it is and compiled")
    chosen = parser.parse_args()
    os.environ["DS_ACCELERATOR"] = "cpu"
    torch.set_num_threads(1)
    if chosen.layer:
        print(json.dumps({"dtype": chosen.dtype, "operations_of_a_layer": counts_of_layer(chosen.dtype)}))
        return
    counts = counts_of_update(chosen.layers, chosen.groups, chosen.dtype, SCORERS[chosen.scorer])
    found = {
        "setting": vars(chosen),
        "operations": counts.operations.total(),
        "synchronisations": counts.synchronisations.total(),
        "by_name": dict(counts.operations.most_common()),
        "waits": dict(counts.synchronisations),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
