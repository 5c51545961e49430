"""Sections that choose their class by a name, and the modules that may look up names."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import SerializeAsAny, ValidationError

from skillpress.core.registry import ALGORITHMS, ENGINES, ENVIRONMENTS, EXPERIENCES, SELECTIONS, Registry
from skillpress.core.sections import ByName, Section
from skillpress.models.engines.parameters import EngineParameters

NAMED = {
    "algorithm.name": ALGORITHMS,
    "algorithm.select.name": SELECTIONS,
    "engine.name": ENGINES,
    "environment.name": ENVIRONMENTS,
    "experience.name": EXPERIENCES,
}
SERVER = {"name": "server", "urls": ["http://a:1"], "answer_seconds": 60}


class Whole(Section):
    engine: Annotated[SerializeAsAny[EngineParameters], ByName(ENGINES, "engine.name")]


@pytest.mark.parametrize(("parameter", "registry"), NAMED.items(), ids=NAMED)
def test_every_registered_part_has_a_section_with_a_name(parameter: str, registry: Registry) -> None:
    for name in registry:
        section = ByName(registry, parameter).section(name)
        assert issubclass(section, Section) and "name" in section.model_fields, name


def test_a_section_keeps_the_keys_of_the_part_that_it_names() -> None:
    whole = Whole.model_validate({"engine": SERVER})
    assert type(whole.engine) is ByName(ENGINES, "engine.name").section("server")
    assert whole.model_dump(mode="json")["engine"].items() >= SERVER.items()


def test_a_section_that_is_checked_is_not_checked_again() -> None:
    engine = Whole.model_validate({"engine": SERVER}).engine
    assert Whole.model_validate({"engine": engine}).engine is engine


@pytest.mark.parametrize(
    ("section", "place", "message"),
    [
        ({"name": "servre"}, ("engine",), "name is 'servre'; allowed: local, vllm, server; did you mean"),
        ({"urls": []}, ("engine",), "name is None; allowed: local, vllm, server"),
        ({"name": ["local"]}, ("engine",), r"name is \['local'\]; allowed"),
        ("local", ("engine",), "name is None"),
        (SERVER | {"urls": []}, ("engine", "urls"), "at least 1 item"),
        (SERVER | {"port": 1}, ("engine", "port"), "not permitted"),
    ],
)
def test_a_mistake_in_a_named_section_has_its_place(
    section: object, place: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        Whole.model_validate({"engine": section})
    assert [error["loc"] for error in caught.value.errors()] == [place]


def test_a_section_of_another_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="EngineParameters"):
        Whole.model_validate({"engine": Whole.model_validate({"engine": SERVER})})


SECTIONS = {
    "core/sections.py",
    "core/registry.py",
    "environments/section.py",
    "environments/program/section.py",
    "experiment/indistinct.py",
}
"""Files that look up names, besides every ``parameters.py``; the last compares experiments' shapings."""
BELOW = ("core", "skills", "rollouts", "environments", "models", "training", "experiment")
"""The layers that receive their parts. The layers above read commands, which also name parts."""


def test_names_are_looked_up_by_sections_alone(repository: Path) -> None:
    library = repository / "skillpress"
    files = [file for layer in BELOW for file in (library / layer).rglob("*.py")]
    found = {
        str(file.relative_to(library))
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "skillpress.core.registry"
        if "lookup" in {alias.name for alias in node.names}
    }
    assert found, "some file looks names up"
    assert {name for name in found if not name.endswith("/parameters.py")} <= SECTIONS
