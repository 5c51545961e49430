"""The versions of constraints.txt, on the Pythons that pyproject.toml names."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [
    version
    for line in PROJECT["classifiers"]
    if "." in (version := line.removeprefix("Programming Language :: Python :: "))
]


def pinned() -> dict[str, Distribution]:
    """The pinned packages that are installed here."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    names = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    found = {canonicalize_name(each.name): each for each in distributions()}
    return {name: each for name, each in found.items() if name in names}


def test_the_oldest_python_that_is_named_is_the_oldest_that_is_admitted() -> None:
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={PYTHONS[0]}")


@pytest.mark.parametrize("python", PYTHONS)
def test_every_pinned_version_can_be_installed_by_each_python(python: str) -> None:
    """A pin that needs a later one, such as 3.11.5, leaves pip searching for many minutes on Debian 12."""
    # A package may say nothing: the standard library then gives None, importlib_metadata raises KeyError.
    needs = {
        name: each.metadata["Requires-Python"]
        for name, each in pinned().items()
        if "Requires-Python" in each.metadata
    }
    assert len(needs) > 200, "the pinned packages are installed here"
    assert not {name: said for name, said in needs.items() if f"{python}.0" not in SpecifierSet(said)}


@pytest.mark.parametrize("python", PYTHONS)
def test_what_a_pinned_version_needs_on_each_python_is_pinned(python: str) -> None:
    """Prefect needs pendulum up to Python 3.12, and whenever from 3.13 on, which no test on 3.11 installs."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    lines = (ROOT / "constraints.txt").read_text()
    names = {canonicalize_name(line.partition("==")[0]) for line in lines.splitlines()}
    open_ends = {
        f"{name} needs {requirement.name}"
        for name, each in pinned().items()
        if name != "torch"  # whose CUDA packages depend on the build that an index offers
        for requirement in map(Requirement, each.requires or ())
        if requirement.marker is None or requirement.marker.evaluate(environment)
        if canonicalize_name(requirement.name) not in names
    }
    assert not open_ends
