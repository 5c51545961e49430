"""dvc.yaml against the code: it must name what the stages really depend on."""

from importlib import import_module
from pathlib import Path

import grimp
import pytest
import yaml

from skillpress.environments import ENVIRONMENTS

GLUE = {"params", "interface", "storage", "trajectory", "seeds", "unfinished"}
"""Modules that every stage uses: reading, checking and naming, which decide no result. ``seeds`` is
among them because its one function may never change."""


@pytest.fixture(scope="module")
def stages(repository: Path) -> dict[str, dict]:
    return yaml.safe_load((repository / "dvc.yaml").read_text())["stages"]


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("skillpress", "tasks")


def library_imports(imports: grimp.ImportGraph, stage: str) -> set[str]:
    """Parts of the library that the stage's modules import, the assembly seen through."""
    modules = {f"tasks.{stage}"} | {
        m for m in imports.find_modules_directly_imported_by(f"tasks.{stage}") if m.startswith("tasks.")
    } - {"tasks.stage", "tasks.tracking", "tasks.data"}
    found: set[str] = set()
    for module in modules:
        found |= imports.find_modules_directly_imported_by(module)
    if "skillpress.assembly" in found:
        found |= imports.find_modules_directly_imported_by("skillpress.assembly")
    return {name.split(".")[1] for name in found if name.startswith("skillpress.")}


STAGES = (
    "prepare_tasks", "prepare_policy", "collect_rollouts", "project_skills", "fit_dictionary",
    "train_policy", "evaluate_policy", "report",
)  # fmt: skip


def test_there_is_one_module_per_stage_and_each_depends_on_its_own(stages: dict[str, dict]) -> None:
    assert tuple(stages) == STAGES
    for name, stage in stages.items():
        assert stage["cmd"] == f"python -m tasks.{name}"
        assert f"tasks/{name}.py" in stage["deps"]
        assert callable(import_module(f"tasks.{name}").main)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_every_part_of_the_library_that_it_imports(
    stage: str, stages: dict[str, dict], imports: grimp.ImportGraph
) -> None:
    library = [dep for dep in stages[stage]["deps"] if dep.startswith("skillpress/")]
    declared = {Path(dep).parts[1].removesuffix(".py") for dep in library}
    assert library_imports(imports, stage) - GLUE <= declared


WIRING = {"skillpress.environments", "skillpress.environments.bundle"}
"""What ties worlds to the rest and decides nothing in them."""


@pytest.mark.parametrize("world", ENVIRONMENTS)
def test_what_a_worlds_folder_imports_from_beside_it_is_a_dependency_too(
    world: str, stages: dict[str, dict], imports: grimp.ImportGraph
) -> None:
    folder = f"skillpress.environments.{world}"
    inside = {folder, *imports.find_descendants(folder)}
    found = set().union(*map(imports.find_modules_directly_imported_by, inside)) - inside - WIRING
    beside = {".".join(m.split(".")[:3]) for m in found if m.startswith("skillpress.environments.")}
    for name, stage in stages.items():
        if "skillpress/environments/${environment.name}" in stage["deps"]:
            declared = {dep.removesuffix(".py").replace("/", ".") for dep in stage["deps"]}
            assert beside <= declared, name


def test_every_dependency_of_the_source_exists(stages: dict[str, dict], repository: Path) -> None:
    made = {path for stage in stages.values() for kind in ("outs", "metrics") for path in stage.get(kind, [])}
    for stage in stages.values():
        for dep in stage["deps"]:
            path = dep.replace("${environment.name}", "countdown")
            assert path in made or (repository / path).exists(), path


def test_every_parameter_is_a_dependency_of_the_stage_that_is_named_for_it(stages: dict[str, dict]) -> None:
    used = {key.split(".")[0] for stage in stages.values() for key in stage["params"]}
    assert used == set(yaml.safe_load(Path("params.yaml").read_text()))
