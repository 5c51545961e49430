"""The forms of the Gumbel-max draw: the same tokens, and few bytes a logit."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.operations import Counts
from skillpress.core.engine import Sampling
from skillpress.models.engines import gumbel_max
from skillpress.models.engines.gumbel_max import by_definition, by_loop
from skillpress.models.engines.sampler import draw
from tests.support.models import numpy_triton

SHAPES = st.tuples(st.integers(1, 9), st.sampled_from([1, 2, 59, 1023, 1024, 1025, 5000]))


def made(shape: tuple[int, int], scale: float, seed: int) -> tuple[torch.Tensor, Any]:
    """Log-probabilities, some of them -inf, and streams."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=scale, size=shape)
    logits[:, 1:][random.random((shape[0], shape[1] - 1)) < 0.1] = -np.inf
    streams = random.integers(0, 2**64, shape[0], dtype=np.uint64)
    return torch.from_numpy(logits).float().log_softmax(dim=-1), streams


@settings(deadline=None, max_examples=40)
@given(SHAPES, st.sampled_from([0.0, 1.0, 8.0, 60.0, 900.0]), st.integers(0, 999))
def test_the_loop_draws_the_tokens_of_the_definition(shape: tuple[int, int], scale: float, seed: int) -> None:
    logprobs, streams = made(shape, scale, seed)
    assert torch.equal(by_loop(logprobs, streams), by_definition(logprobs, streams))


def test_the_loop_draws_a_million_tokens_of_the_definition() -> None:
    """The distributions are flat, ordinary and steep; the margin of the bound excludes no winner."""
    for scale in (0.1, 2.0, 15.0):
        logprobs, _ = made((1, 30), scale, 0)
        streams = np.random.default_rng(1).integers(0, 2**64, 333_334, dtype=np.uint64)
        many = logprobs.expand(len(streams), -1)
        assert torch.equal(by_loop(many, streams), by_definition(many, streams))


def test_a_row_without_numbers_draws_its_first_token_in_every_form() -> None:
    logprobs, streams = torch.full((2, 2000), torch.nan), np.arange(2, dtype=np.uint64)
    for negative in (logprobs, -logprobs):
        assert by_loop(negative, streams).tolist() == by_definition(negative, streams).tolist() == [0, 0]


@pytest.mark.parametrize(("form", "bytes_"), [("loop", 32), ("definition", 400)])
def test_a_draw_reads_and_writes_few_bytes_a_logit(
    form: str, bytes_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By operations of torch, each of which reads its arguments and writes its result. The loop reads a
    logarithm twice, and writes and reads twice a bound."""
    monkeypatch.setattr(gumbel_max, "COMPILES", form == "loop")
    logits, seeds = made((4, 49_152), 3.0, 0)
    counts = Counts().of(lambda: draw(logits, Sampling(), seeds, 0))
    beside = 5 * 4 if form == "loop" else 0
    each = counts.bytes / logits.numel() + beside
    assert each == pytest.approx(bytes_, abs=1)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The kernel's module: with Triton's interpreter, or with numpy in place of Triton."""
    name = "skillpress.models.engines.gumbel_kernel"
    if find_spec("triton") is None:
        for module, found in numpy_triton.modules().items():
            monkeypatch.setitem(sys.modules, module, found)
    elif os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("set TRITON_INTERPRET=1: the kernel is tested on CPUs")
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


@pytest.mark.parametrize("programs", [1, 512])
def test_the_kernels_code_draws_the_tokens_of_the_definition(
    kernel: ModuleType, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Carried out by numpy; it never ran on a GPU."""
    monkeypatch.setattr(kernel, "PROGRAMS", programs)
    draws = kernel.kernel_of(torch.device("cpu"))
    assert draws is not None
    for shape in ((1, 5), (7, 1025), (3, 9000)):
        for scale in (0.0, 3.0, 900.0):
            logprobs, streams = made(shape, scale, 0)
            found = draws(logprobs, streams)
            assert torch.equal(found, by_definition(logprobs, streams))


def test_a_kernel_that_draws_otherwise_is_not_used(
    kernel: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernel, "GOLDEN", gumbel_max.GOLDEN + 2)
    assert kernel.kernel_of(torch.device("cpu")) is None
    assert "without its Triton kernel" in caplog.text and "in place of" in caplog.text
