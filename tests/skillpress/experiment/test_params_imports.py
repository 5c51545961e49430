"""What checking a params file imports, and what it says of a package that is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.rollouts.agents import parameters as agents
from skillpress.training import lora_parameters
from skillpress.training.lora_parameters import ImitationLora, LoraParameters

ROOT = Path(__file__).parents[3]


def test_parameters_are_checked_without_torch() -> None:
    """A mistake in params.yaml is reported within a second, whatever algorithm it names."""
    program = (
        "import sys; from skillpress.experiment.params import load_params; "
        "[load_params('params.yaml', f'params/{name}.yaml') for name in sys.argv[1:]]; "
        "sys.exit('torch' in sys.modules)"
    )
    names = ["rloo", "reinforce_pp", "ppo", "gspo", "cispo", "varied_groups", "dynamic_sampling"]
    done = subprocess.run([sys.executable, "-c", program, *names], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_lora_without_peft_is_refused_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(lora_parameters, "version", missing)
    with pytest.raises(UserError, match=r"training\.lora: is set, but .* peft is not installed.*\[lora\]"):
        LoraParameters(rank=4, alpha=8).libraries()
    with pytest.raises(UserError, match=r"imitation\.lora: is set, but .* or set imitation\.lora to null"):
        ImitationLora(rank=4, alpha=8, then="merge").libraries()


def test_weights_of_4_bits_without_bitsandbytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    lora = {"rank": 4, "alpha": 8}
    overlay = {
        "policy": {"quantised": "nf4"}, "imitation": {"demonstrations": 0}, "training": {"lora": lora},
    }  # fmt: skip
    policy = check_params(merge(read_yaml(ROOT / "params.yaml"), overlay), source="a test").policy
    monkeypatch.setattr(agents, "version", missing)
    with pytest.raises(UserError, match=r"policy\.quantised: is nf4, but the package bitsandbytes is not"):
        policy.libraries()
