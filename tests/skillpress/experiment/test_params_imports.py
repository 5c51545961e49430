"""What checking a params file imports, and what it says of a package that is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.training.loop import parameters
from skillpress.training.lora_parameters import LoraParameters

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

    monkeypatch.setattr(parameters, "version", missing)
    with pytest.raises(UserError, match=r"training\.lora: is set, but .* peft is not installed.*\[lora\]"):
        LoraParameters(rank=4, alpha=8).libraries()
