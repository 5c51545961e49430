"""Chooses a model's scorer, and turns on gradient checkpointing in its layers.

    cached   computes every different prompt once; keys and values are fanned out to its responses, in a
             second pass through the layers (scoring.py): on CPUs
    tree     computes all prompts and responses in one pass, every common beginning once (tree_scoring.py):
             on GPUs, and with gradient checkpointing, which drops the cache
    packed   computes whole sequences end to end, for FlashAttention, which takes no masks (packing.py)

All take responses in the same form and give the same log-probabilities, up to rounding. On CPUs trees saved
12 to 25% with short prompts and cost 5 to 8% with long ones, so recorded experiments keep their scorer and
its bits. With checkpointing they took a third of the packed scorer's time.
"""

from __future__ import annotations

import logging

from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from skillpress.core.errors import PolicyError
from skillpress.models.policy.attention import BLOCKED
from skillpress.models.policy.linear_layers import use_onednn
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.scoring import ResponseScorer, Scorer
from skillpress.models.policy.tree_scoring import TreeScorer, why_not

_LOG = logging.getLogger(__name__)

MASKING_KERNELS = {"eager", "sdpa", BLOCKED}
"""Attention implementations that support the masks of the cached scorer and of trees."""


def choose_scorer(model: PreTrainedModel) -> Scorer:
    """The scorer for this model in its current state and on its current device."""
    use_onednn(model)
    if model.config._attn_implementation not in MASKING_KERNELS:
        return PackedScorer(model)
    blocks = model.device.type == "cuda"
    if blocks or model.is_gradient_checkpointing:
        if (reason := why_not(model, blocks)) is None:
            return TreeScorer(model, blocks)
        _LOG.info("%s is not scored as trees: %s", type(model).__name__, reason)
    return PackedScorer(model) if model.is_gradient_checkpointing else ResponseScorer(model)


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
