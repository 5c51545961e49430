"""dvc.yaml against the code: a stage depends on what it imports, and on nothing that it does not."""

from __future__ import annotations

import ast
import shutil
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import grimp
import pytest
import yaml

from skillpress.console.evaluations.code import deciding_code
from skillpress.console.evaluations.players import PLAYERS
from skillpress.core import registry
from skillpress.environments import bundle
from skillpress.experiment.params import load_params
from skillpress.pipeline import inputs
from skillpress.pipeline.graph import read_stage

STAGES = (
    "prepare_tasks", "prepare_policy", "collect_rollouts", "project_skills", "fit_dictionary",
    "train_policy", "play_floors", "evaluate_policy", "report",
)  # fmt: skip

NAMED_BY = {
    "ENVIRONMENTS": "environment.name",
    "STATE_UPDATES": "policy.state_update",
    "PARSERS": "policy.parser",
    "ENGINES": "engine.name",
    "SEARCHES": "skills.search",
    "CLOSURES": "skills.closure",
    "CORPORA": "skills.corpus",
    "SHAPINGS": "reward.shaping",
    "ALGORITHMS": "algorithm.name",
    "SELECTIONS": "algorithm.select.name",
    "EXPERIENCES": "experience.name",
}
"""A table of the registry to the parameter that names its entry."""


@pytest.fixture(scope="module")
def stages(repository: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((repository / "dvc.yaml").read_text())["stages"]


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("skillpress", "tasks", exclude_type_checking_imports=True, cache_dir=None)


def closure(imports: grimp.ImportGraph, start: set[str]) -> set[str]:
    """The modules that are imported when these are, with the packages around them that import anything."""
    return {module for each in start for module in closure_of_one(imports, each)}


@cache
def closure_of_one(imports: grimp.ImportGraph, start: str) -> set[str]:
    found, waiting = set(), {start}
    while waiting:
        module = waiting.pop()
        found.add(module)
        parts = module.split(".")
        around = {".".join(parts[:depth]) for depth in range(2, len(parts))}
        waiting |= {package for package in around if imports.find_modules_directly_imported_by(package)}
        waiting |= imports.find_modules_directly_imported_by(module)
        waiting -= found
    return found


@cache
def tables_used(module: str) -> set[str]:
    """The tables of the registry that a module looks names up in, itself or by a section's field."""
    file = Path(import_module(module).__file__ or "")
    places = ("skillpress.core.registry", "skillpress.core.sections")
    nodes = ast.walk(ast.parse(file.read_text()))
    froms = [n for n in nodes if isinstance(n, ast.ImportFrom) and n.module in places]
    names = {alias.name for node in froms for alias in node.names}
    return names & NAMED_BY.keys() if names & {"lookup", "ByName"} else set()


def reads(stage: dict[str, Any], parameter: str) -> bool:
    """Whether the stage depends on a parameter or on the section it is in."""
    return parameter in stage["params"] or parameter.split(".")[0] in stage["params"]


def full_closure(
    imports: grimp.ImportGraph, name: str, stage: dict[str, Any], chosen: dict[str, str]
) -> set[str]:
    """The import closure of a stage with the parts that its experiment names."""
    found = closure(imports, {f"tasks.{name}"})
    while True:
        tables = {table for module in found for table in tables_used(module) if reads(stage, NAMED_BY[table])}
        parts = set()
        for table in tables & chosen.keys():
            module = getattr(registry, table)[chosen[table]].partition(":")[0]
            parts |= {module, *imports.find_descendants(module)}
        if parts <= found:
            return found
        found |= closure(imports, parts)


@cache
def file_of(module: str, repository: Path) -> Path:
    file = Path(*module.split("."))
    return file / "__init__.py" if (repository / file).is_dir() else file.with_suffix(".py")


def covered(module: str, dependencies: tuple[Path, ...], repository: Path) -> bool:
    file = file_of(module, repository)
    return any(file == dependency or dependency in file.parents for dependency in dependencies)


def experiments() -> list[dict[str, str]]:
    """Every environment with every engine, state update, parser, and so on, one change at a time."""
    tables = {table: list(getattr(registry, table)) for table in NAMED_BY}
    default = {table: names[0] for table, names in tables.items()} | {"ENVIRONMENTS": "countdown"}
    changes = [{table: name} for table, names in tables.items() for name in names]
    return [default, *(default | change for change in changes)]


def resolved(chosen: dict[str, str]) -> dict[str, Any]:
    """The default parameters with these names in them, as far as templates of dvc.yaml look."""
    values = load_params().model_dump(mode="json")
    for table, name in chosen.items():
        *sections, key = NAMED_BY[table].split(".")
        place = values
        for section in sections:
            place = place[section]
        place[key] = name
    return values


def test_there_is_one_module_per_stage(stages: dict[str, dict[str, Any]], repository: Path) -> None:
    assert tuple(stages)[1:] == STAGES
    assert {path.stem for path in (repository / "tasks").glob("*.py")} - {"__init__", "__main__"} == set(
        STAGES
    )
    for name in STAGES:
        assert stages[name]["cmd"] == f"python -m tasks {name}"


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_its_import_closure(
    name: str, stages: dict[str, dict[str, Any]], imports: grimp.ImportGraph, repository: Path
) -> None:
    for chosen in experiments():
        entry = read_stage(name, resolved(chosen), repository / "dvc.yaml")
        assert inputs.ENVIRONMENT in entry.dependencies
        pinned = (*entry.dependencies, *bundle(chosen["ENVIRONMENTS"]).code)
        missing = [
            module
            for module in full_closure(imports, name, stages[name], chosen)
            if not covered(module, pinned, repository)
        ]
        assert not missing, chosen


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_no_code_that_it_does_not_import(
    name: str, stages: dict[str, dict[str, Any]], imports: grimp.ImportGraph, repository: Path
) -> None:
    found: set[str] = set()
    for chosen in experiments():
        found |= full_closure(imports, name, stages[name], chosen)
    named = {
        dependency
        for chosen in experiments()
        for dependency in read_stage(name, resolved(chosen), repository / "dvc.yaml").dependencies
    }
    for dependency in named:
        if dependency.parts[0] in ("skillpress", "tasks"):
            assert any(covered(module, (dependency,), repository) for module in found), dependency


@pytest.mark.parametrize("name", registry.ENVIRONMENTS)
def test_an_environment_names_no_code_that_it_does_not_import(
    name: str, imports: grimp.ImportGraph, repository: Path
) -> None:
    found = closure(imports, {registry.ENVIRONMENTS[name].partition(":")[0]})
    for folder in bundle(name).code:
        assert any(covered(module, (folder,), repository) for module in found), folder


def test_a_training_with_a_teacher_depends_on_all_by_which_it_is_asked(
    imports: grimp.ImportGraph, repository: Path
) -> None:
    entry = read_stage("train_policy", resolved(experiments()[0]), repository / "dvc.yaml")
    named = (*entry.dependencies, *inputs.TEACHING)
    found = closure(imports, {where.partition(":")[0] for where in registry.TEACHERS.values()})
    found -= {"skillpress.play.chat", "skillpress.measure.judge"}  # which import nothing
    assert not [module for module in found if not covered(module, named, repository)]
    assert all(any(covered(module, (file,), repository) for module in found) for file in inputs.TEACHING)


@pytest.mark.parametrize("where", PLAYERS.values(), ids=PLAYERS)
def test_an_evaluation_depends_on_all_of_the_library_that_its_player_imports(
    where: str, imports: grimp.ImportGraph, repository: Path
) -> None:
    code = tuple(path.relative_to(repository) for path in deciding_code(load_params()))
    found = closure(imports, {where.partition(":")[0]})
    around = ("skillpress.console", "skillpress.pipeline")
    library = {module for module in found if module.startswith("skillpress.")}
    library = {module for module in library if not module.startswith(around)}
    assert library and not [module for module in library if not covered(module, code, repository)]
    described = (
        "skillpress.show.report.page",
        "skillpress.measure.paper.text",
        "skillpress.measure.evaluation.paired",
    )
    assert not any(covered(module, code, repository) for module in described)


def test_every_dependency_of_the_source_exists(stages: dict[str, dict[str, Any]], repository: Path) -> None:
    made = {
        path if isinstance(path, str) else next(iter(path))
        for stage in stages.values()
        for kind in ("outs", "metrics")
        for path in stage.get(kind, [])
    }
    for name in STAGES:
        for dependency in read_stage(name, resolved(experiments()[0]), repository / "dvc.yaml").dependencies:
            assert str(dependency) in made or (repository / dependency).exists(), dependency


def test_every_parameter_is_a_dependency_of_a_stage(
    stages: dict[str, dict[str, Any]], repository: Path
) -> None:
    used = {key.split(".")[0] for name in STAGES for key in stages[name]["params"]}
    assert used == set(yaml.safe_load((repository / "params.yaml").read_text()))


DECIDING = ("skillpress/core/trajectory.py", "skillpress/core/interface.py",
            "skillpress/experiment/params.py",
            "skillpress/learn/training/keeping/selected_checkpoint.py",
            "skillpress/learn/training/learner.py",
            "skillpress/learn/algorithms/grpo.py", "skillpress/learn/algorithms/group_statistics.py",
            "skillpress/learn/algorithms/selections/none.py",
            "infra/deepspeed/zero1_fp32.json", "data/inputs.json", "data/environment.json",
            "models/base/config.json")  # fmt: skip
"""What decides the result of the default experiment, whose algorithm is GRPO."""

DESCRIBING = ("skillpress/learn/algorithms/rloo.py", "skillpress/learn/algorithms/reinforce_pp.py",
              "skillpress/learn/algorithms/selections/varied_groups.py",
              "skillpress/measure/paper/text.py", "skillpress/show/report/page.py",
              "skillpress/measure/analysis/drift.py",
              "skillpress/measure/evaluation/paired.py", "infra/deepspeed/zero3_bf16.json",
              "skillpress/pipeline/tracking/recorder.py", "skillpress/experiment/estimate.py")  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the source with the inputs of training in place."""
    for folder in ("skillpress", "tasks", "infra"):
        shutil.copytree(repository / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "dvc.yaml", tmp_path)
    made_by_stages = ("data/tasks/train.parquet", "models/base/config.json")
    for made in ("data/inputs.json", "data/environment.json", *made_by_stages):
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


KEEPS_WORK = {"prepare_policy", "collect_rollouts", "play_floors", "train_policy", "evaluate_policy"}
"""The stages that go on with what a killed process of theirs had done."""


def test_the_stages_that_take_long_keep_unfinished_work(repository: Path) -> None:
    modules = (repository / "tasks").glob("*.py")
    assert {module.stem for module in modules if "stage.store" in module.read_text()} == KEEPS_WORK


@pytest.mark.parametrize("name", sorted(KEEPS_WORK))
def test_unfinished_work_has_a_key_of_its_code_its_inputs_and_its_parameters(name: str, source: Path) -> None:
    values = load_params(Path(__file__).parents[3] / "params.yaml").model_dump(mode="json")
    entry = read_stage(name, values)
    for path in entry.dependencies:
        if not path.exists():  # made by another stage
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    keys = [entry.key(values)]
    assert entry.key(values) == keys[0]
    for changed in (f"tasks/{name}.py", "skillpress/core/resume.py", "data/inputs.json"):
        with (source / changed).open("a") as file:
            file.write("\n")
        keys.append(entry.key(values))
    keys.append(entry.key(values | {"seed": values["seed"] + 1}))
    assert len(set(keys)) == 5


@pytest.mark.parametrize(("file", "decides"), [*product(DECIDING, [True]), *product(DESCRIBING, [False])])
def test_the_key_of_unfinished_training_changes_with_what_decides_it_alone(
    file: str, decides: bool, source: Path
) -> None:
    values = load_params(Path(__file__).parents[3] / "params.yaml").model_dump(mode="json")
    before = read_stage("train_policy", values).key(values)
    with (source / file).open("a") as changed:
        changed.write("\n")
    assert (read_stage("train_policy", values).key(values) != before) == decides


def test_the_key_of_unfinished_training_changes_with_its_parameters_alone(source: Path) -> None:
    values = load_params(Path(__file__).parents[3] / "params.yaml").model_dump(mode="json")
    key = read_stage("train_policy", values).key(values)
    values["evaluation"] |= {"runs": 7}
    assert read_stage("train_policy", values).key(values) == key
    values["training"] |= {"steps": 7}
    assert read_stage("train_policy", values).key(values) != key


def test_unfinished_training_goes_on_when_its_teacher_is_at_another_address(source: Path) -> None:
    teacher = {
        "name": "server",
        "url": "http://a/v1",
        "model": "m",
        "key_variable": "",
        "max_new_tokens": 9,
        "omit": [],
    }
    values = load_params(Path(__file__).parents[3] / "params.yaml").model_dump(mode="json")

    def key(**changed: str) -> str:
        values["skills"] |= {"library": {"top_k": 1, "teacher": teacher | changed}}
        return read_stage("train_policy", values).key(values)

    assert key() == key(url="http://b:8000", key_variable="OTHER")
    assert key() != key(model="another")
