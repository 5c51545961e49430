"""Compiled layers compute what eager ones do; where they cannot be compiled, the reason is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import register_backend
from torch._dynamo.utils import counters
from transformers.modeling_layers import GradientCheckpointingLayer

from skillpress.core.errors import PolicyError
from skillpress.models.policy.agreement import check_agreement, example_pairs
from skillpress.models.policy.compiled_layers import compile_layers
from skillpress.models.policy.scorers import checkpoint_layers
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.models.policy.tree_scoring import TreeScorer
from tests.support.models.families import FAMILIES, family
from tests.support.models.tree_gradients import branches, scored

TRACED = "aot_eager"
"""torch's compiler without its last part, which makes machine code and takes the longest."""
FEW = ("Llama", "Gemma2", "Gemma3Text")
"""Families without and with sliding windows, and with a soft cap."""


@pytest.fixture(autouse=True)
def _no_code_of_other_tests() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.thorough) for name in FAMILIES],
)
def test_scores_and_gradients_are_those_of_eager_layers(name: str) -> None:
    model = family(name, torch.float64)
    rows = branches(model)
    logprobs, gradients = scored(TreeScorer(model), rows)
    scorer = TreeScorer(model)
    assert compile_layers(scorer, backend=TRACED) is None
    assert all(weight.grad is None for weight in model.parameters())
    found, slopes = scored(scorer, rows)
    torch.testing.assert_close(found, logprobs, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(slopes, gradients, atol=1e-6, rtol=0)


def test_all_layers_and_passes_of_all_lengths_share_their_functions() -> None:
    model = family("Llama", num_hidden_layers=12)  # more than the functions that torch compiles of one code
    scorer = TreeScorer(model)
    assert compile_layers(scorer, backend=TRACED) is None
    rows = branches(model)
    for some in (rows, rows[:2], rows[3:], rows * 2):
        scored(scorer, some)
    # torch has a function of its own for one row; on GPUs there is never another number.
    assert counters["stats"]["unique_graphs"] == 2
    assert not counters["graph_break"]


def test_layers_that_forget_their_activations_are_compiled_too() -> None:
    model = family("Llama", torch.float64)
    checkpoint_layers(model)
    rows = branches(model)
    logprobs, gradients = scored(TreeScorer(model), rows)
    assert compile_layers(TreeScorer(model), backend=TRACED) is None
    found, slopes = scored(TreeScorer(model), rows)
    torch.testing.assert_close(found, logprobs, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(slopes, gradients, atol=1e-6, rtol=0)


def test_the_check_before_training_compares_them_with_eager_layers() -> None:
    model = family("Llama")

    @register_backend(name="wrong")
    def _wrong(graph: Any, inputs: Any) -> Any:
        return lambda *values: [2 * each for each in graph.forward(*values)]

    assert compile_layers(TreeScorer(model), backend="wrong") is None
    with pytest.raises(PolicyError, match="differ by"):
        check_agreement(model, example_pairs(model), scorer=TreeScorer(model))


def test_a_compiler_that_fails_leaves_eager_layers_and_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    @register_backend(name="broken")
    def _broken(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no Triton here")

    model = family("Llama")
    rows = branches(model)
    logprobs, gradients = scored(TreeScorer(model), rows)
    scorer = TreeScorer(model)
    reason = compile_layers(scorer, backend="broken")
    assert reason is not None
    assert "no Triton here" in reason
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("skillpress")]
    assert ours == [f"training.compile: the layers of LlamaForCausalLM are not compiled: {reason}"]
    found, slopes = scored(scorer, rows)
    assert torch.equal(found, logprobs)
    assert torch.equal(slopes, gradients)


@pytest.mark.parametrize(
    ("scorer", "stage", "words"),
    [(ResponseScorer, 2, "its scorer is 'cached'"), (TreeScorer, 3, "ZeRO stage 3")],
)
def test_layers_that_differ_are_not_compiled(scorer: Any, stage: int, words: str) -> None:
    model = family("Llama")
    assert words in str(compile_layers(scorer(model), stage))
    layers = [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]
    assert all(layer._compiled_call_impl is None for layer in layers)


@pytest.mark.thorough
def test_machine_code_computes_the_same() -> None:
    model = family("Llama")
    rows = branches(model)
    logprobs, gradients = scored(TreeScorer(model), rows)
    scorer = TreeScorer(model)
    assert compile_layers(scorer) is None
    found, slopes = scored(scorer, rows)
    torch.testing.assert_close(found, logprobs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(slopes, gradients, atol=1e-5, rtol=0)
