"""Chooses a model's scorer, and turns on gradient checkpointing in its layers.

    cached   computes every different prompt once; keys and values are fanned out to its responses
             (scoring.py)
    packed   computes whole sequences end to end, for gradient checkpointing and for attention kernels without
             a mask over padding (packing.py)

Both take responses in the same form and give the same log-probabilities, up to rounding.
"""

from __future__ import annotations

from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from skillpress.core.errors import PolicyError
from skillpress.models.policy.attention import BLOCKED
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.scoring import ResponseScorer, Scorer

MASKING_KERNELS = {"eager", "sdpa", BLOCKED}
"""Attention implementations for which the cached scorer's masks are correct."""


def choose_scorer(model: PreTrainedModel) -> Scorer:
    """The scorer for this model in its current state: the cached one whenever it is correct."""
    cached = model.config._attn_implementation in MASKING_KERNELS and not model.is_gradient_checkpointing
    return ResponseScorer(model) if cached else PackedScorer(model)


def checkpoint_layers(model: PreTrainedModel) -> None:
    """Turn on gradient checkpointing for a model that stays in ``eval()`` mode.

    Layers forget their activations only in training mode, but a model in training mode would draw new dropout
    at every pass. So only the layers are put into training mode, not the modules within them.
    ``agreement.py`` detects a family that applies dropout in the layer itself. ``eval()`` turns it off again.

    Raises:
        PolicyError: the model does not support it.
    """
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not model.supports_gradient_checkpointing or not layers:
        raise PolicyError(
            f"training.gradient_checkpointing: {type(model).__name__} has no layers that transformers can "
            "checkpoint; set it to false, and lower training.microbatch_tokens where memory is short"
        )
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for layer in layers:
        layer.training = True
