"""Names in params.yaml that come from outside: from an installed package, or from a lab's own folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillpress.core import names
from skillpress.core.errors import ParamsError
from skillpress.core.names import Registry, check_name, lookup, named
from skillpress.core.registry import ALGORITHMS, SHAPINGS, registries

METHOD = "class Mine:\n    advantages = None\n\n\nclass Bare:\n    pass\n\n\nNUMBER = 3\n"
Install = Callable[..., None]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look up the installed packages again, and forget the modules of each test."""
    caches = (names._entry_points, names._origin)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()
    for module in ("a_lab", "a_lab.methods", "a_lab.needy", "other_methods", "more_methods"):
        sys.modules.pop(module, None)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Adds what Python takes for an installed package: a module, and its distribution's entry points."""

    def installed(distribution: str, module: str, **offered: str) -> None:
        site = tmp_path / distribution
        information = site / f"{distribution.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        (site / f"{module}.py").write_text(METHOD)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (information / "top_level.txt").write_text(f"{module}\n")
        lines = "".join(f"[skillpress.{group}]\n{line}\n" for group, line in offered.items())
        (information / "entry_points.txt").write_text(lines)
        monkeypatch.syspath_prepend(str(site))

    return installed


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab's folder as the working directory; Python does not search it for modules yet."""
    folder = tmp_path / "lab"
    (folder / "a_lab").mkdir(parents=True)
    (folder / "a_lab" / "methods.py").write_text(METHOD)
    monkeypatch.chdir(folder)
    return folder


def test_what_an_installed_package_offers_has_a_name_and_an_origin(install: Install) -> None:
    install("other-methods", "other_methods", algorithms="mine = other_methods:Mine")
    part = ALGORITHMS.find("mine")
    assert part is not None and (part.target, part.origin) == ("other_methods:Mine", "other-methods 1.2")
    assert "mine" in ALGORITHMS and "mine" not in SHAPINGS
    assert lookup(ALGORITHMS, "mine", "algorithm.name").__name__ == "Mine"
    assert "mine (from other-methods 1.2)" in ALGORITHMS.unknown("mines")


def test_a_package_may_not_bring_a_name_that_exists(install: Install) -> None:
    install("other-methods", "other_methods", algorithms="grpo = other_methods:Mine")
    with pytest.raises(ParamsError) as refused:
        ALGORITHMS.offered()
    said = str(refused.value)
    assert "other-methods 1.2 offers the name 'grpo' (other_methods:Mine), which skillpress has" in said
    assert ALGORITHMS.find("grpo").origin == "skillpress", "ours is never replaced"


def test_two_packages_may_not_bring_one_name(install: Install) -> None:
    install("other-methods", "other_methods", algorithms="mine = other_methods:Mine")
    install("more-methods", "more_methods", algorithms="mine = more_methods:Mine")
    with pytest.raises(ParamsError, match=r"(other|more)-methods 1.2 .* which (other|more)-methods 1.2 has"):
        ALGORITHMS.find("mine")


def test_a_class_in_the_labs_folder_is_named_by_its_module(lab: Path) -> None:
    assert named(ALGORITHMS, {"name": "a_lab.methods:Mine"}) == "a_lab.methods:Mine"
    assert lookup(ALGORITHMS, "a_lab.methods:Mine", "algorithm.name").__name__ == "Mine"
    part = ALGORITHMS.find("a_lab.methods:Mine")
    assert part is not None and part.origin == "this folder"


def test_a_class_of_an_installed_package_is_recorded_with_its_version(install: Install) -> None:
    install("other-methods", "other_methods")
    part = ALGORITHMS.find("other_methods:Mine")
    assert part is not None and part.origin == "other-methods 1.2"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("grpoo", r"allowed: grpo, .*; did you mean 'grpo'\? \(or module:attribute, from this folder"),
        ("no_lab.methods:Mine", "no module no_lab is in .*lab or among the installed packages"),
        ("a_lab.method:Mine", "no module a_lab.method is in"),
        ("a_lab.methods:Mime", "a_lab.methods has no 'Mime'; did you mean 'Mine'?"),
        ("a_lab.methods:Bare", "a_lab.methods:Bare is not a part for algorithm.name: it has no advantages"),
        ("a_lab.methods:NUMBER", "it has no advantages"),
        *(
            (wrong, r"did you mean 'a_lab\.methods:Mine'\?")
            for wrong in (
                "a_lab.methods",
                "a_lab.methods.Mine",
                "a_lab.methods:",
                "a_lab/methods.py",
                "a_lab/methods.py:Mine",
                "methods",
                "a_lab",
                "a_lab.methods:Bare",
            )
        ),
    ],
)
def test_a_wrong_name_is_refused_with_what_there_is_and_the_nearest(name: str, said: str, lab: Path) -> None:
    with pytest.raises(ParamsError, match=f"algorithm.name: is {name!r}; .*{said}"):
        lookup(ALGORITHMS, name, "algorithm.name")
    with pytest.raises(ValueError, match=said):
        check_name(ALGORITHMS, name)


def test_what_is_no_function_is_refused_where_one_is_needed(lab: Path) -> None:
    with pytest.raises(ParamsError, match=r"is not a part for reward\.shaping: it cannot be called"):
        lookup(SHAPINGS, "a_lab.methods:NUMBER", "reward.shaping")


def test_what_a_plug_in_lacks_is_not_taken_for_a_wrong_name(lab: Path) -> None:
    (lab / "a_lab" / "needy.py").write_text("import there_is_no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_package"):
        lookup(ALGORITHMS, "a_lab.needy:Mine", "algorithm.name")


def test_a_part_that_imports_a_module_by_its_former_name_is_told_the_present_one(lab: Path) -> None:
    (lab / "a_lab" / "former.py").write_text("from skillpress.learn.algorithms.algorithm import Algorithm\n")
    with pytest.raises(ParamsError, match=r"imports skillpress\.learn, which is skillpress\.training now"):
        lookup(ALGORITHMS, "a_lab.former:Mine", "algorithm.name")


def test_a_part_that_imports_what_is_gone_is_told_where_the_form_is(lab: Path) -> None:
    (lab / "a_lab" / "before.py").write_text("from skillpress.core.seeds import A\n")
    with pytest.raises(
        ParamsError, match=r"a_lab\.before: .*; docs/extending\.md has the form that parts have"
    ):
        lookup(SHAPINGS, "a_lab.before:Mine", "reward.shaping")


def test_a_table_that_nobody_extends_takes_its_own_names_alone() -> None:
    table = Registry("", "--agent", {"one": "a.b:c"})
    assert "one" in table and "a.b:c" not in table
    assert table.unknown("two") == "allowed: one"


def test_every_kind_of_part_may_come_from_outside() -> None:
    groups = {table.group for table in registries()}
    assert groups >= {
        "algorithms", "environments", "selections", "shapings", "engines", "searches", "state_updates",
        "parsers", "renderings", "teachers",
    }  # fmt: skip
    assert len(groups) == len(registries())
