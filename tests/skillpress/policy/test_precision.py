"""Which combinations of types keep float32 masters."""

from __future__ import annotations

import pytest
import torch

from skillpress.policy.policy import PolicyError
from skillpress.policy.precision import require_masters
from skillpress.training.learner import CONFIGURATIONS, read_configuration

NAMES = sorted(path.stem for path in CONFIGURATIONS.glob("*.json"))


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
    """In float32 wherever DeepSpeed can: stage 0 in bfloat16 refuses to."""
    expected = "bf16" if name == "zero0_bf16" else "fp32"
    assert read_configuration(name)["data_types"] == {"grad_accum_dtype": expected}
