"""Which combinations of types keep float32 masters, and what happens to changes too small for bfloat16."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import PolicyError
from skillpress.models.policy.precision import require_masters, round_at_random
from skillpress.training.loop.optimizer import read_configuration
from skillpress.training.loop.parameters import DEEPSPEED

NAMES = sorted(path.stem for path in DEEPSPEED.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_weights_need_a_configuration_that_keeps_masters(name: str) -> None:
    require_masters(torch.float32, name, read_configuration(name))
    if name.endswith("bf16"):
        require_masters(torch.bfloat16, name, read_configuration(name))
        return
    with pytest.raises(PolicyError, match=rf"policy\.dtype bfloat16 with training\.deepspeed {name}"):
        require_masters(torch.bfloat16, name, read_configuration(name))


def test_masters_in_bfloat16_are_none() -> None:
    settings = {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}
    with pytest.raises(PolicyError, match="float32 master weights"):
        require_masters(torch.bfloat16, "mine", settings)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_accumulated_in_a_stated_type(name: str) -> None:
    """In float32 wherever DeepSpeed supports it: stage 0 in bfloat16 does not."""
    expected = "bf16" if name == "zero0_bf16" else "fp32"
    assert read_configuration(name)["data_types"] == {"grad_accum_dtype": expected}


SIZES = st.floats(2.0**-100, 2.0**100, width=32)
ORDINARY = SIZES | SIZES.map(lambda size: -size) | st.just(0.0)


@given(values=st.lists(ORDINARY, min_size=1, max_size=50), seed=st.integers(0, 2**62))
def test_a_weight_is_rounded_to_one_of_its_neighbours_and_one_that_fits_stays(
    values: list[float], seed: int
) -> None:
    weights = torch.tensor(values)
    rounded = round_at_random(weights, seed)
    assert rounded.dtype == torch.bfloat16
    off = (rounded.float() - weights).abs()
    assert torch.all(off <= weights.abs() / 128), "by less than a last bit"
    assert torch.equal(round_at_random(rounded.float(), seed + 1), rounded)
    assert torch.equal(round_at_random(weights, seed), rounded)


@pytest.mark.parametrize("share", [0.01, 0.25, 0.9])
@pytest.mark.parametrize("sign", [1, -1])
def test_as_many_weights_move_as_the_change_is_worth(share: float, sign: int) -> None:
    """Rounded to the nearest value, a change of a quarter of the last bit would have no effect."""
    weights = torch.full((100_000,), sign * (1 + share / 128))
    moved = round_at_random(weights, seed=0) != sign
    assert float(moved.float().mean()) == pytest.approx(share, abs=0.005)


def test_the_weights_that_a_small_change_moves_are_among_those_that_a_larger_one_moves() -> None:
    small, large = (round_at_random(torch.full((1000,), 1 + share / 128), 0) != 1 for share in (0.2, 0.5))
    assert torch.all(large[small]) and int(large.sum()) > int(small.sum())
