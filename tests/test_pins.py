"""The versions of constraints.txt, on the oldest Python that pyproject.toml admits."""

from __future__ import annotations

import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def test_every_pinned_version_can_be_installed_by_the_oldest_python() -> None:
    """A pin that needs a later one, such as 3.11.5, leaves pip searching for many minutes on Debian 12."""
    (bound,) = SpecifierSet(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    )
    assert bound.operator == ">="
    oldest = f"{bound.version}.0"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    # A package may say nothing: the standard library then gives None, importlib_metadata raises KeyError.
    needs = {
        each.name: each.metadata["Requires-Python"]
        for each in distributions()
        if canonicalize_name(each.name) in pinned and "Requires-Python" in each.metadata
    }
    assert len(needs) > 200, "the pinned packages are installed here"
    assert not {name: said for name, said in needs.items() if oldest not in SpecifierSet(said)}
