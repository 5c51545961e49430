"""What ``skillpress view`` opens for each word of its command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.cli.init import LabManifest
from skillpress.cli.viewing.found import find, skills_page
from skillpress.core.errors import StorageError, UserError
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task
from skillpress.pipeline.files import (
    BASE_POLICY,
    BASE_ROLLOUTS,
    DICTIONARY,
    EVALUATION_ROLLOUTS,
    HISTORY,
    TRAINING_ADVANTAGES,
    TRAINING_ROLLOUTS,
    split_file,
)
from skillpress.skills.dictionary import save_fitted
from skillpress.skills.history import write_history
from tests.support.reports.viewer_samples import dictionary, ordinary, tasks, write_all

Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    write_all(folder)
    return folder


@pytest.fixture
def made(samples: Path, tmp_path: Path) -> Make:
    """``made(name)``: a folder with the files that stages leave."""

    def make(name: str) -> Path:
        home = tmp_path / name
        for split in ("train", "test"):
            write_tasks(home / split_file(split), [task for task in tasks() if task.split == split])
        for rollouts in (BASE_ROLLOUTS, EVALUATION_ROLLOUTS):
            write_rollouts(home / rollouts, ordinary()[:20])
        save_fitted(home / DICTIONARY, dictionary())
        write_history(home / HISTORY, {1: dictionary().learned_counts})
        shutil.copytree(samples / "tokenizer", home / BASE_POLICY)
        (home / "params.yaml").write_text("environment: {name: countdown}")
        return home

    return make


def by_id(*splits: str) -> dict[str, Task]:
    return {task.task_id: task for task in tasks() if task.split in splits}


def test_an_experiment_is_all_of_its_rollouts_with_what_lies_beside_them(made: Make) -> None:
    home = made("one")
    found = find([home])
    assert [source.name for source in found.sources] == ["base", "evaluation"]
    assert [source.rollouts for source in found.sources] == [home / BASE_ROLLOUTS, home / EVALUATION_ROLLOUTS]
    for source in found.sources:
        assert source.tasks == by_id("train", "test")
        assert source.tokenizer == home / BASE_POLICY
    assert found.phrases.dictionary == dictionary()
    assert found.phrases.history == {1: dictionary().learned_counts}


def test_a_trainings_episodes_come_with_their_advantages(made: Make) -> None:
    home = made("one")
    shutil.copy(home / BASE_ROLLOUTS, home / TRAINING_ROLLOUTS)
    advantages = {source.name: source.advantages for source in find([home]).sources}
    assert advantages == {"base": None, "training": home / TRAINING_ADVANTAGES, "evaluation": None}


def test_several_experiments_are_told_apart_by_their_folders(made: Make) -> None:
    found = find([made("one"), made("two")])
    assert [source.name for source in found.sources] == [
        "one/base", "one/evaluation", "two/base", "two/evaluation",
    ]  # fmt: skip


def test_a_file_of_an_experiment_finds_what_lies_beside_it(made: Make) -> None:
    home = made("one")
    (source,) = find([home / EVALUATION_ROLLOUTS]).sources
    assert source.tasks == by_id("train", "test") and source.tokenizer == home / BASE_POLICY


def test_a_file_is_opened_once_however_often_it_is_named(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made("one")
    monkeypatch.chdir(home)
    assert len(find([Path(), home / EVALUATION_ROLLOUTS, EVALUATION_ROLLOUTS]).sources) == 2


def test_what_evaluate_leaves_is_its_rollouts_tasks_and_model(evaluated: Path, policy: str) -> None:
    for path in (evaluated, evaluated / "rollouts.parquet"):
        (source,) = find([path]).sources
        assert (source.name, source.rollouts) == (evaluated.name, evaluated / "rollouts.parquet")
        assert list(source.tasks.values()) == read_tasks(evaluated / "tasks.parquet")
        assert source.tokenizer == Path(policy)


def test_the_random_explorers_evaluation_has_no_tokenizer(explored: Path) -> None:
    (source,) = find([explored]).sources
    assert len(source.tasks) == 10 and source.tokenizer is None


FOREIGN = """
environment:
  name: gymnasium_text
  max_steps: 4
  id: Doors-v0
  module: ""
  kwargs: {}
  won: {info: success}
  skills: {verbs: [open], rules: [["^go (left|right)", walk]]}
"""


def test_skills_are_those_of_the_rules_that_the_experiment_states(made: Make) -> None:
    home = made("one")
    (home / "params.yaml").write_text(FOREIGN)
    (source,) = find([home / EVALUATION_ROLLOUTS]).sources
    assert source.projection is not None and source.projection.alphabet == ("walk", "open")
    (own,) = find([made("two") / EVALUATION_ROLLOUTS]).sources
    assert own.projection is None, "φ is the environment's own"


def test_skills_of_an_evaluation_are_those_of_the_rules_that_it_was_played_with(
    tmp_path: Path,
) -> None:
    (tmp_path / "doors.yaml").write_text(
        FOREIGN.replace("Doors-v0", "tests/Doors-v0").replace(
            'module: ""', "module: tests.support.environments.doors_game"
        )
    )
    options = ["--environment", "gymnasium_text", "--params", str(tmp_path / "doors.yaml")]
    options += ["--agent", "explorer", "--tasks", "4", "--votes", "1", "--set", "policy.rendering=text"]
    options += ["--set", "policy.model=some", "--set", "imitation.demonstrations=0"]
    assert main(["evaluate", *options, "--output", str(tmp_path / "played")]) == 0
    (source,) = find([tmp_path / "played"]).sources
    assert source.projection is not None and source.projection.alphabet == ("walk", "open")


def test_damaged_rules_are_named(made: Make) -> None:
    home = made("one")
    (home / "params.yaml").write_text(FOREIGN.replace("verbs: [open]", "verbs: 3"))
    with pytest.raises(
        StorageError, match=r"params\.yaml: environment\.skills\.verbs: Input should be a valid list"
    ):
        find([home])


def test_a_file_by_itself_is_opened_without_tasks(samples: Path) -> None:
    (source,) = find([samples / "hostile.parquet"]).sources
    assert (dict(source.tasks), source.tokenizer) == ({}, None)


def test_the_tokenizer_of_the_command_line_is_everybodys(made: Make, samples: Path) -> None:
    found = find([made("one"), samples / "hostile.parquet"], Path("mine"))
    assert {source.tokenizer for source in found.sources} == {Path("mine")}


def test_what_is_no_experiment_is_refused_with_what_would_be(made: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such file or folder; name an experiment's"):
        find([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: contains neither params\.yaml"):
        find([tmp_path / "empty"])
    begun = EvaluationFolder(tmp_path / "begun")
    begun.claim({"agent": "explorer"})
    with pytest.raises(UserError, match="is an unfinished evaluation; run its command again"):
        find([begun.path])
    home = made("one")
    shutil.rmtree(home / "data" / "rollouts")
    with pytest.raises(UserError, match=r"has no episodes yet .*; skillpress run makes them"):
        find([home])
    shutil.copytree(made("two"), home / "workspaces" / "smoke")
    with pytest.raises(UserError, match=r"has no episodes yet .*; name one of \S+/workspaces/smoke$"):
        find([home])


def test_a_lab_is_no_folder_of_skills_although_their_manifests_have_one_name(made: Make) -> None:
    home = made("one")
    LabManifest("lab", "0.1.0", {}).write(home)
    assert skills_page(home) is None and find([home]).sources


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("seed: 1", "environment: name is None; allowed: alfworld"),
        ("environment: [countdown]", "environment: name is None; allowed"),
        ("environment: {name: [1]}", r"environment: name is \[1\]; allowed"),
        ("environment: {name: countdwon}", "did you mean 'countdown'"),
        ("environment: {name: gymnasium_text, max_steps: 3, id: x}", r"environment\.module: Field required"),
    ],
)
def test_parameters_of_something_else_are_refused_with_their_place(
    made: Make, parameters: str, said: str
) -> None:
    home = made("run")
    (home / "params.yaml").write_text(parameters)
    with pytest.raises(StorageError, match=rf"params\.yaml: .*{said}") as error:
        find([home])
    assert "\n" not in str(error.value)
