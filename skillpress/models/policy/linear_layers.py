"""Linear layers that AMD's processors compute in half of the time.

torch multiplies matrices of float32 on CPUs by MKL, which uses AVX-512 only on Intel's processors. The oneDNN
in torch uses it on AMD's as well: a layer of many rows then takes half of the time, in both directions
(``benchmarks/linear_layers.py``). Training and scoring use it there. Few rows are not worth its longer call,
and sampling keeps MKL, so that an answer does not depend on how many prompts are read at once.
``torch.backends.mkldnn.flags(enabled=False)`` turns it off.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

ROWS = 1024
"""The fewest rows of a product by oneDNN."""


def use_onednn(model: PreTrainedModel) -> None:
    """Make the model's linear layers compute by :func:`linear` where that is faster."""
    if not mkl_is_slow():
        return
    for layer in model.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = Linear  # the same parameters and hooks, under the same names


def is_linear(layer: nn.Module) -> bool:
    """Whether the layer is a matrix and a bias, and nothing else (such as LoRA)."""
    return type(layer) in (nn.Linear, Linear)


class Linear(nn.Linear):
    """torch's layer, computed by :func:`linear`."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """``input`` times the transposed weight, plus the bias."""
        return linear(input, self.weight, self.bias)


def linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """``rows`` times the transposed weight, plus the bias, of any shape that torch's function takes."""
    if not suits_onednn(rows, weight) or torch.is_inference_mode_enabled():
        return functional.linear(rows, weight, bias)
    flat = rows.reshape(-1, rows.shape[-1])
    made = cast("torch.Tensor", _Product.apply(flat, weight, bias))  # type: ignore[no-untyped-call]
    return made.view(*rows.shape[:-1], len(weight))


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The matrix product of ``left`` [rows, inner] and ``right`` [inner, columns], without a gradient."""
    return _onednn(left, right.T) if suits_onednn(left, right) else left @ right


def gradient_of_weight(slope: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """``slope``^T ``rows``, which sums over the rows of both."""
    if not suits_onednn(rows, slope):
        return slope.T @ rows
    if slope.shape[1] < rows.shape[1]:
        return _onednn(slope.T, rows.T)
    return _onednn(rows.T, slope.T).T  # oneDNN is faster if the longer side is the second


@cache
def mkl_is_slow() -> bool:
    """Whether this processor has AVX-512, torch has oneDNN, and MKL does not use AVX-512 here."""
    if not torch.backends.mkldnn.is_available():
        return False
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_f")) and "AMD" in str(found.get("cpu_name"))


def suits_onednn(rows: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether oneDNN should compute the product of these rows with the other matrix."""
    return (
        not torch.compiler.is_compiling()  # first: a compiled layer would depend on the number of rows
        and rows.dtype == other.dtype == torch.float32
        and rows.device.type == "cpu"
        and rows.numel() >= ROWS * rows.shape[-1]
        and mkl_is_slow()
        and bool(torch.backends.mkldnn.enabled)
    )


def _onednn(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    # torch's own operation of its compiled models: plain float32, no activation.
    made = torch.ops.mkldnn._linear_pointwise.default(
        rows, weight, bias, attr="none", scalars=[], algorithm=""
    )
    return cast("torch.Tensor", made)


class _Product(torch.autograd.Function):
    """The forward and the backward pass of :func:`linear`, for rows [n, width]."""

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        ctx.save_for_backward(rows, weight)
        return _onednn(rows, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        of_rows, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(slope, weight) if of_rows else None,
            gradient_of_weight(slope, rows) if of_weight else None,
            slope.sum(dim=0) if of_bias else None,
        )
