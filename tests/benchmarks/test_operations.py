"""The number of operations and host synchronisations of an update, which decides its time on a GPU."""

from __future__ import annotations

import pytest
import torch

from benchmarks.operations import Counts, counts_of_update
from skillpress.models.policy.scoring import ResponseScorer

LAYERS = 30
"""SmolLM2's."""


@pytest.fixture(scope="module")
def one() -> Counts:
    """An update through one layer."""
    return counts_of_update(1, 2, "bfloat16")


def test_an_update_of_smollm2s_shape_takes_few_operations_and_waits_once(one: Counts) -> None:
    """Every layer adds the same number. A plain update in one pass takes 4,446, and the cached scorer's took
    8,538, and 8 reads and 20 copies for which the host waits, with DeepSpeed's own step."""
    two = counts_of_update(2, 2, "bfloat16")
    per_layer = two.operations.total() - one.operations.total()
    assert one.operations.total() + (LAYERS - 1) * per_layer < 3_800
    assert one.synchronisations.total() == two.synchronisations.total() == 1


def test_the_cached_scorer_goes_twice_through_a_layer(one: Counts) -> None:
    cached = counts_of_update(1, 3, "bfloat16", ResponseScorer)
    assert cached.operations["aten::silu"] == 2 * one.operations["aten::silu"]
    assert cached.operations.total() > one.operations.total()


def test_operations_of_backward_passes_count_and_views_do_not() -> None:
    weight = torch.ones(3, 3, requires_grad=True)
    counts = Counts().of(lambda: (weight @ weight.view(9).view(3, 3)).sum().backward())
    assert counts.operations["aten::mm"] == 3
    assert "aten::view" not in counts.operations


def test_what_makes_the_host_wait_counts() -> None:
    values = torch.tensor([1.0, -1.0, 2.0])
    waits = [
        lambda: float(values[0]),
        lambda: bool(values.sum() > 0),
        lambda: values.tolist(),
        lambda: values[values > 0],
        lambda: values.nonzero(),
        lambda: torch.tensor([1.0]),
    ]
    assert [Counts().of(each).synchronisations.total() for each in waits] == [1] * len(waits)
    places = torch.tensor([0, 2])
    assert not Counts().of(lambda: values[places] * 2).synchronisations
