"""Which stages an edit reruns, as laws on a copy of the source: code that describes results reruns none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.errors import UserError
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.pipeline import fingerprints as module
from skillpress.pipeline.closure import Code
from skillpress.pipeline.fingerprints import DESCRIBING, Fingerprints, changes
from skillpress.pipeline.graph import StageEntry, read_stages
from skillpress.pipeline.sources import Sources

WEIGHTS = {"prepare_policy", "collect_rollouts", "train_policy", "play_floors", "evaluate_policy"}
"""The stages that compute with a policy's weights."""
PLAYED = {"prepare_tasks", "project_skills", "fit_dictionary", "report", *WEIGHTS}
"""The stages that need to know what is played."""
ALL = {"filter_tasks", *PLAYED}
TRAINED = {"train_policy"}


class Copy:
    """A copy of the source, whose files can be edited temporarily."""

    def __init__(self, folder: Path, stages: list[StageEntry]) -> None:
        self.folder, self._stages, self._sources = folder, stages, Sources()

    def fingerprints(self, params: Params) -> dict[str, dict[str, Any]]:
        """Stage to fingerprint of this code."""
        made = Fingerprints(params, Code(self.folder, self._sources))
        return {stage.name: made.of(stage) for stage in self._stages}

    @contextmanager
    def edited(self, file: str, edit: Callable[[str], str]) -> Iterator[None]:
        path = self.folder / file
        before = path.read_text()
        after = edit(before)
        assert after != before, f"{file} has not what is to be edited"
        path.write_text(after)
        try:
            yield
        finally:
            path.write_text(before)

    def reruns(self, params: Params, file: str, edit: Callable[[str], str]) -> set[str]:
        """The stages whose fingerprints this edit changes."""
        before = self.fingerprints(params)
        with self.edited(file, edit):
            return different(before, self.fingerprints(params))


def different(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {stage for stage in before if before[stage] != after[stage]}


def a_line_more(text: str) -> str:
    """The text with an added line that changes a file of Python, of JSON, or any other."""
    return text + "\n_MORE = 1\n"


@pytest.fixture(scope="module")
def copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("source")
    for name in ("skillpress", "tasks"):
        shutil.copytree(repository / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    stages = [each for each in read_stages(repository / "dvc.yaml") if each.name != "pin_inputs"]
    return Copy(folder, stages)


@pytest.fixture(scope="module")
def base(repository: Path) -> dict[str, Any]:
    """The values of params.yaml."""
    return read_yaml(repository / "params.yaml")


@pytest.fixture(scope="module")
def default(base: dict[str, Any]) -> Params:
    return check_params(base, "params.yaml")


def test_a_comment_or_a_docstring_reruns_nothing(copy: Copy, default: Params) -> None:
    def described(text: str) -> str:
        return text.replace('"""', '"""Said otherwise: ', 1) + "\n# and a comment\n"

    for file in ("skillpress/core/trajectory.py", "skillpress/training/loop/learner.py", "tasks/report.py"):
        assert copy.reruns(default, file, described) == set()


def test_a_line_in_a_registry_reruns_nothing(copy: Copy, default: Params) -> None:
    def one_more(text: str) -> str:
        for group in ("algorithms", "environments", "engines", "parsers", "searches", "shapings"):
            start = text.index("{", text.index(f'"{group}",')) + 1
            text = f'{text[:start]}\n        "new": "skillpress.training.algorithms.rloo:RLOO",{text[start:]}'
        return text

    assert copy.reruns(default, "skillpress/core/registry.py", one_more) == set()


def test_the_line_of_a_name_reruns_the_stages_whose_part_it_names(copy: Copy, default: Params) -> None:
    def moved(text: str) -> str:
        return text.replace("algorithms.grpo:GRPO", "algorithms.rloo:RLOO")

    assert copy.reruns(default, "skillpress/core/registry.py", moved) == {"train_policy"}


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        (
            "skillpress/training/algorithms/grpo.py",
            {"train_policy"},
        ),  # printed, not made, by the report
        ("skillpress/training/algorithms/rloo.py", set()),
        ("skillpress/training/algorithms/selections/varied_groups.py", set()),
        ("skillpress/skills/search/greedy.py", {"fit_dictionary", "train_policy"}),
        ("skillpress/skills/search/refined.py", set()),
        ("skillpress/training/loop/learner.py", TRAINED),
        (
            "skillpress/training/loop/keeping/selected_checkpoint.py",
            {"train_policy", "evaluate_policy", "report"},
        ),
        ("skillpress/training/algorithms/group_statistics.py", {"train_policy"}),
        ("skillpress/models/engines/local/engine.py", WEIGHTS - {"prepare_policy"}),
        ("skillpress/models/engines/vllm/engine.py", set()),
        ("skillpress/environments/countdown/rules.py", PLAYED),
        ("skillpress/environments/alfworld/searcher.py", set()),
        ("skillpress/core/trajectory.py", ALL),
        ("skillpress/evaluation/paper/text.py", {"report"}),
        ("skillpress/evaluation/paper/printed_figures.csv", {"report"}),
        ("skillpress/evaluation/paper/alfworld/tables.py", set()),
        ("skillpress/evaluation/statistics/paired.py", {"evaluate_policy", "report"}),
        ("skillpress/reports/report/templates/report.css", {"report"}),
        ("skillpress/reports/report/page.py", {"report"}),
        ("skillpress/evaluation/analysis/drift.py", {"report"}),
        ("skillpress/evaluation/analysis/mdl_report.py", {"fit_dictionary", "report"}),
        ("skillpress/pipeline/stage.py", set()),
        ("skillpress/pipeline/tracking/recorder.py", set()),
        ("skillpress/pipeline/reproduce/lock.py", set()),
        ("skillpress/experiment/estimate.py", set()),
        ("tasks/__main__.py", set()),
        ("tasks/train_policy.py", TRAINED),
    ],
)
def test_an_edit_reruns_the_stages_that_it_decides(
    file: str, stages: set[str], copy: Copy, default: Params
) -> None:
    assert copy.reruns(default, file, a_line_more) == stages


DESCRIBERS = [(stage, described) for stage, modules in DESCRIBING.items() for described in modules]


@pytest.mark.parametrize(("stage", "described"), [*DESCRIBERS, ("train_policy", "skillpress.skills.bounds")])
def test_what_describes_reruns_nothing_that_decides(
    stage: str, described: str, copy: Copy, default: Params
) -> None:
    file = described.replace(".", "/") + ".py"
    assert not copy.reruns(default, file, a_line_more) & WEIGHTS


@pytest.mark.parametrize(("stage", "described"), DESCRIBERS)
def test_what_is_left_out_of_a_fingerprint_would_be_in_it(
    stage: str, described: str, copy: Copy, default: Params
) -> None:
    """The list has no module that the stages do not import."""
    made = Fingerprints(default, Code(copy.folder))
    (entry,) = (each for each in copy._stages if each.name == stage)
    assert described in made.closure([f"tasks.{stage}"], entry.parameters).modules


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_an_upgraded_library_reruns_the_stages_that_compute_with_it(
    library: str, copy: Copy, default: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copy.fingerprints(default)
    monkeypatch.setattr(module, "version", lambda name: "0.0.1" if name == library else version(name))
    assert different(before, copy.fingerprints(default)) == WEIGHTS


def test_the_deepspeed_configuration_that_is_named_is_trainings_alone(
    base: dict[str, Any], copy: Copy
) -> None:
    params = [
        check_params(merge(base, {"training": {"deepspeed": name}}), "test")
        for name in ("zero1_fp32", "zero2_bf16")
    ]
    found = [copy.fingerprints(each) for each in params]
    assert different(*found) == TRAINED
    assert list(found[0]["train_policy"]["deepspeed"]) == ["zero1_fp32.json"]


TEACHER = {
    "name": "server", "url": "http://127.0.0.1:1/v1", "model": "", "key_variable": "", "max_new_tokens": 9,
}  # fmt: skip
LIBRARY = {"retrieval": "by_task", "top_k": 1, "every": 1, "new": 1, "teacher": TEACHER}


def test_the_code_that_asks_a_teacher_decides_trainings_that_have_one(
    base: dict[str, Any], copy: Copy, default: Params
) -> None:
    changed = {"skills": {"library": LIBRARY}, "policy": {"model": "smollm2-135m", "rendering": "text"}}
    asking = check_params(merge(base, changed), "test")
    client = "skillpress/rollouts/chat/client.py"
    assert copy.reruns(asking, client, a_line_more) == {"train_policy"}
    assert copy.reruns(default, client, a_line_more) == set()


def test_recorded_episodes_and_their_readers_decide_the_imitations_that_name_them(
    base: dict[str, Any], copy: Copy, default: Params, tmp_path: Path
) -> None:
    log, reader = tmp_path / "log.jsonl", "skillpress/logs/chat.py"
    log.write_text("one")
    named = check_params(merge(base, {"imitation": {"episodes": [str(log)]}}), "test")
    assert copy.reruns(named, reader, a_line_more) == {"prepare_policy"}
    assert copy.reruns(default, reader, a_line_more) == set()
    before = copy.fingerprints(named)
    log.write_text("another")
    assert different(before, copy.fingerprints(named)) == {"prepare_policy"}
    log.unlink()
    with pytest.raises(UserError, match=r"imitation\.episodes: .*log\.jsonl: no such file"):
        copy.fingerprints(named)


@pytest.mark.parametrize(
    "file", ["skillpress/rollouts/sandbox/runner.py", "skillpress/environments/sandboxed.py"]
)
def test_the_sandboxes_decide_the_experiments_that_run_code_in_them(
    file: str,
    repository: Path,
    base: dict[str, Any],
    copy: Copy,
    default: Params,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "environment_data", lambda section: {})  # its programs are not installed
    overlay = read_yaml(repository / "params" / "code_repair.yaml")
    sandboxed = check_params(merge(base, overlay), "test")
    assert copy.reruns(default, file, a_line_more) == set()
    assert "train_policy" in copy.reruns(sandboxed, file, a_line_more)


def test_a_fingerprint_names_files_below_their_package_and_never_where_that_is(
    copy: Copy, default: Params
) -> None:
    for fingerprint in copy.fingerprints(default).values():
        assert str(copy.folder) not in json.dumps(fingerprint)
        assert all((copy.folder / file).is_file() for file in fingerprint["code"])


def test_the_same_code_elsewhere_has_the_same_fingerprints(
    copy: Copy, default: Params, tmp_path: Path
) -> None:
    for name in ("skillpress", "tasks"):
        shutil.copytree(copy.folder / name, tmp_path / name)
    assert Copy(tmp_path, copy._stages).fingerprints(default) == copy.fingerprints(default)


METHOD = """
from skillpress.training.algorithms.grpo import GRPO
from my_lab.weights import HALF


class Mine(GRPO):
    half: float = HALF
"""


@pytest.fixture
def lab(copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """A lab's folder with its own algorithm; skillpress is the installed package."""
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "methods.py").write_text(METHOD)
    (tmp_path / "my_lab" / "weights.py").write_text("HALF = 0.5\n")
    (tmp_path / "my_lab" / "other.py").write_text("")
    shutil.copytree(copy.folder / "tasks", tmp_path / "tasks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Copy(tmp_path, copy._stages)


def test_a_labs_algorithm_reruns_the_stages_that_use_it(
    lab: Copy, base: dict[str, Any], default: Params
) -> None:
    own = {**base["algorithm"], "name": "my_lab.methods:Mine"}
    params = check_params({**base, "algorithm": own}, "test")
    for file in ("my_lab/methods.py", "my_lab/weights.py"):
        assert lab.reruns(params, file, a_line_more) == {"train_policy"}
        assert lab.reruns(default, file, a_line_more) == set()
    assert lab.reruns(params, "my_lab/other.py", a_line_more) == set()
    named = lab.fingerprints(params)["train_policy"]["parts"]["algorithm.name"]
    assert named == ["my_lab.methods:Mine (this folder)"]


def test_libraries_and_data_of_an_environment_are_in_its_fingerprints(
    copy: Copy, default: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "data" not in copy.fingerprints(default)["prepare_tasks"]
    monkeypatch.setattr(CountdownParameters, "libraries", ("polars",))
    monkeypatch.setattr(CountdownParameters, "inputs", lambda section: {"words.parquet": section.name})
    found = copy.fingerprints(default)["prepare_tasks"]
    assert found["data"] == {"words.parquet": "countdown"}
    assert found["libraries"] == {"polars": version("polars")}


def test_a_package_that_an_environment_lacks_is_named(
    copy: Copy, default: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountdownParameters, "libraries", ("no-such-package",))
    with pytest.raises(UserError, match="countdown needs the package no-such-package"):
        copy.fingerprints(default)


def test_what_has_changed_is_said_by_name() -> None:
    before = {"code": {"a.py": "1", "b.py": "2"}, "libraries": {"torch": "1"}, "model": "scratch"}
    after = {"code": {"a.py": "1", "c.py": "3"}, "libraries": {"torch": "2"}, "model": "other"}
    assert changes(before, after) == ["b.py", "c.py", "torch", "model"]
    assert changes(before, before) == []
