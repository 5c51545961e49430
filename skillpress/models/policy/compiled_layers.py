"""Layers that torch compiles for the learner, so that a GPU starts fewer kernels.

``python -m benchmarks.operations --layer`` counts a layer's operations, eager and compiled. All layers are
one function, for passes of all lengths. That holds for trees alone: the cached scorer's cache is a new object
in every layer, and torch would compile a function for each layer until it reaches its limit of 8.
"""

from __future__ import annotations

import logging

from transformers.modeling_layers import GradientCheckpointingLayer

from skillpress.models.policy.agreement import example_pairs
from skillpress.models.policy.scoring import Scorer, pack_responses
from skillpress.models.policy.tree_scoring import TreeScorer

_LOG = logging.getLogger(__name__)

FAILURES = (RuntimeError, OSError, ImportError)
"""Errors of a failed compilation: torch's own, or those of a missing program or package."""


def compile_layers(scorer: Scorer, zero_stage: int = 0, backend: str = "inductor") -> str | None:
    """Compile the layers in place, and try them on a few tokens, forwards and backwards.

    Args:
        zero_stage: of the configuration that will train the model, which DeepSpeed must not have yet.

    Returns:
        Why they are not compiled, in words; the layers are then as before. None if they are.
    """
    layers = [module for module in scorer.model.modules() if isinstance(module, GradientCheckpointingLayer)]
    reason = _why_not(scorer, layers, zero_stage)
    if reason is None:
        for layer in layers:
            layer.compile(dynamic=True, backend=backend)
        reason = _failure(scorer)
    if reason is not None:
        for layer in layers:
            layer._compiled_call_impl = None
        _LOG.warning(
            "training.compile: the layers of %s are not compiled: %s", type(scorer.model).__name__, reason
        )
    return reason


def _why_not(scorer: Scorer, layers: list[GradientCheckpointingLayer], zero_stage: int) -> str | None:
    if not isinstance(scorer, TreeScorer):
        return f"its scorer is {scorer.name!r}, but only the scorer 'tree' calls all layers alike"
    if zero_stage >= 3:
        return "ZeRO stage 3 gathers the weights within the layers, where compiled code cannot wait for them"
    return None if layers else "transformers does not say which of its modules are layers"


def _failure(scorer: Scorer) -> str | None:
    """The error of a pass through the compiled layers; None without one. The pass's gradients are dropped."""
    model = scorer.model
    try:
        logprobs, _ = scorer(pack_responses(example_pairs(model), model.device), 1.0)
        logprobs.sum().backward()
    except FAILURES as error:
        # torch's errors have the cause in the second line, and advice for its developers after an empty one.
        return f"{type(error).__name__}: {' '.join(str(error).strip().partition(chr(10) * 2)[0].split())}"
    finally:
        for weight in scorer.parameters():
            weight.grad = None
    return None
