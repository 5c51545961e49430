"""Every benchmark can be started: its modules and the names that they import are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTS = """
import importlib, sys
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}: {error}")
sys.exit("\\n".join(failed) or 0)
"""


def modules() -> list[str]:
    """All modules of benchmarks, those of packages included."""
    files = sorted((ROOT / "benchmarks").rglob("*.py"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


@pytest.mark.timeout(300)
def test_every_module_of_a_benchmark_can_be_imported() -> None:
    assert "benchmarks.call_trees" in modules() and "benchmarks.program_tools.__main__" in modules()
    command = [sys.executable, "-c", IMPORTS, *modules()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
