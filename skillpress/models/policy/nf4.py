"""Linear layers of 4 bits a weight (NF4, Dettmers et al. 2023), for the models that LoRA trains.

64 weights share one float32 scale, so a weight takes 4.5 bits. ``policy.quantised`` rounds a policy's weights
to such values before anything else happens (:func:`round_to_nf4`). The rounded weights have their ordinary
type, so every engine and every saved folder has the same model. Only the learner packs them
(:func:`pack_layers`), which loses nothing: rounded weights pack to themselves.

The package ``bitsandbytes`` packs and computes, on GPUs and CPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from skillpress.core.errors import PolicyError

BLOCK = 64
"""Weights that share a scale."""


def round_to_nf4(model: PreTrainedModel) -> None:
    """Round the weights of all linear layers but the output embeddings, in place.

    Raises:
        PolicyError: a layer cannot have 4 bits.
    """
    with torch.no_grad():
        for _, layer in _layers(model):
            for _ in range(2):  # the first time rounds the scales too, so the second result packs to itself
                layer.weight.copy_(unpacked(_packed(layer.weight)))


def pack_layers(model: PreTrainedModel) -> None:
    """Replace the layers that :func:`round_to_nf4` rounds by packed ones, in place and where they are."""
    from bitsandbytes.nn import Linear4bit

    for name, layer in list(_layers(model)):
        packed = Linear4bit(1, 1, bias=False, compute_dtype=layer.weight.dtype, quant_type="nf4")
        packed.in_features, packed.out_features = layer.in_features, layer.out_features
        packed.weight, packed.bias = _packed(layer.weight), layer.bias
        # Otherwise a pass without gradients on a CPU repacks the weights for a kernel of its own.
        packed.support_avx512bf16_for_cpu = False
        packed.requires_grad_(False)
        model.set_submodule(name, packed)


def unpacked(weight: Any) -> torch.Tensor:
    """The weights of a packed layer in their ordinary type and shape."""
    from bitsandbytes.functional import dequantize_4bit

    found: torch.Tensor = dequantize_4bit(weight.data, weight.quant_state)
    return found


def is_packed(layer: nn.Module) -> bool:
    """Whether :func:`pack_layers` made the layer."""
    return hasattr(layer.weight, "quant_state")


def _packed(weight: torch.Tensor) -> Any:
    from bitsandbytes.nn import Params4bit

    made = Params4bit(weight.detach(), blocksize=BLOCK, compress_statistics=False, quant_type="nf4")
    return made.to(weight.device)


def _layers(model: PreTrainedModel) -> Iterator[tuple[str, nn.Linear]]:
    head = model.get_output_embeddings()
    for name, layer in model.named_modules():
        if layer is head or not isinstance(layer, nn.Linear | Conv1D):
            continue
        width = layer.weight.shape[-1]
        # Rows of another width would share scales, which bitsandbytes 0.50.2 reads wrongly on CPUs.
        if not isinstance(layer, nn.Linear) or width % BLOCK:
            raise PolicyError(
                f"policy.quantised: is nf4, but {name} of {type(model).__name__} is a {type(layer).__name__} "
                f"of rows of {width}; it must be a Linear whose rows are a multiple of {BLOCK}; set "
                "policy.quantised to null"
            )
        yield name, layer
