"""Trainings with a skill library: it grows from training failures, prompts show it, and a kill loses
nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory
from skillpress.environments.section import projection_without_keys
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.models.policy import load_policy
from skillpress.rollouts.collection import requests
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.library.library import FILE, GENERAL, SkillLibrary, read_library, task_class
from skillpress.training.algorithms.batch import Batch, batch_of
from skillpress.training.loop.library_evolution import LibraryEvolution
from tests.support.experiment.killed_training import run, run_and_kill, same_files, same_weights
from tests.support.programs.training_program import parameters, prepare

OVERLAY = """
processes: 1
training: {steps: 5, learning_rate: 0.002, checkpoint_every: 2, keep: best}
environment: {max_steps: 8, max_numbers: 3}
imitation: {epochs: 4}
reward: {shaping: none}
skills: {library: {retrieval: by_task, top_k: 2, every: 2, new: 2, teacher: null}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library")
    prepare(path, OVERLAY, demonstrations=2000)
    run(path, "whole")
    return path


def library_of(folder: Path, output: str) -> SkillLibrary:
    return read_library(folder / f"library-{output}.json")


def test_the_library_grows_from_failures_of_training_tasks_and_from_no_others(folder: Path) -> None:
    library = library_of(folder, "whole")
    assert [version.step for version in library.versions] == [2, 4]
    training = {task.task_id for task in read_tasks(folder / "train.parquet")}
    validation = {task.task_id for task in read_tasks(folder / "validation.parquet")}
    assert validation and not training & validation
    assert library.skills, "without a skill the rest would go untested"
    for version in library.versions:
        assert version.failures
        for failure in version.failures:
            assert failure.startswith(f"train/{version.step}/")
            assert failure.removeprefix(f"train/{version.step}/").rpartition("/")[0] in training
        for skill in version.added:
            assert skill.failures and set(skill.failures) <= set(version.failures)
    failed = {
        f"{played.group_id}/{played.rollout_index}"
        for played in read_rollouts(folder / "training-whole.parquet")
        if not played.won
    }
    assert failed & {failure for version in library.versions for failure in version.failures}


def test_prompts_show_what_the_library_had_for_the_task_and_say_the_same_behind_it(folder: Path) -> None:
    tokenizer = load_policy(folder / "start", "float32").tokenizer
    library, tasks = library_of(folder, "whole"), read_tasks(folder / "train.parquet")
    classes = {task.task_id: task_class(task) for task in tasks}
    seen = set()
    for played in read_rollouts(folder / "training-whole.parquet"):
        before = library.at(int(played.group_id.split("/")[1]) - 1)
        known = [s for s in before.skills if s.task_class in (GENERAL, classes[played.task_id])]
        for step in played.steps:
            knowledge, target, _ = tokenizer.decode(step.prompt_ids).partition(
                f"{played.task_id.partition('=')[0]} "
            )
            assert target and "<unk>" not in knowledge
            assert knowledge.count("<skill>") == min(2, len({skill.text for skill in known}))
            seen.add(bool(knowledge))
    assert seen == {False, True}


@pytest.mark.kills
def test_a_run_that_is_killed_and_goes_on_ends_with_the_same_weights_and_the_same_library(
    folder: Path,
) -> None:
    run_and_kill(folder, "killed", after=5)
    lines = run(folder, "killed")
    assert lines[0].startswith("step 5 "), "it went on from the checkpoint of step 4"
    assert same_weights(folder, "whole", "killed") and same_files(folder, "whole", "killed")
    written = [(folder / f"library-{name}.json").read_bytes() for name in ("whole", "killed")]
    assert written[0] == written[1]


def test_an_evaluation_acts_with_the_library_in_the_policys_folder(folder: Path, tmp_path: Path) -> None:
    params = parameters(folder, smoke=True)
    tasks = read_tasks(folder / "validation.parquet")
    own = read_library(folder / "whole" / FILE)
    assert own.versions == library_of(folder, "whole").versions[: len(own.versions)], "as it stood"
    tokenizer = load_policy(folder / "whole", "float32").tokenizer
    found = {}
    for name, policy in (("start", folder / "start"), ("whole", folder / "whole")):
        wanted = requests(tasks, 1, 0, name)
        collection = CollectionJob(
            params, "evaluation", [Play(policy, wanted)], ResumeStore(tmp_path / name, "key")
        )
        play_episodes(collection, tmp_path / f"{name}.parquet", lambda count: None)
        played = read_rollouts(tmp_path / f"{name}.parquet")
        prompts = [tokenizer.decode(each.steps[0].prompt_ids) for each in played]
        found[name] = any(prompt.startswith("<skill>") for prompt in prompts)
    assert found == {"start": False, "whole": bool(own.skills)}


def collected(folder: Path, split: str) -> Batch:
    tasks = read_tasks(folder / f"{split}.parquet")[:1]
    episodes = [
        Trajectory(
            task_id=tasks[0].task_id, group_id=f"train/1/{tasks[0].task_id}", rollout_index=0, steps=(),
            won=False, terminated=False, truncated=True, outcome="timeout", policy_version=0, seed=0,
        )
    ]  # fmt: skip
    return batch_of(episodes, [0], 1.0, 4, tasks)


def test_an_episode_of_another_split_is_refused(folder: Path) -> None:
    projection = projection_without_keys("countdown")
    evolution = LibraryEvolution(every=1, most=1, projection=projection, ranks=Ranks(), teacher=None)
    assert evolution(1, collected(folder, "train"), None) == {"library/skills": 0.0, "library/added": 0.0}
    assert len(evolution.library.versions[0].failures) == 1
    with pytest.raises(ValueError, match="split 'validation'; a library evolves only from training tasks"):
        evolution(2, collected(folder, "validation"), None)


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_two_processes_that_play_ahead_agree_with_themselves(folder: Path, tmp_path: Path) -> None:
    for made in ("train.parquet", "validation.parquet"):
        shutil.copy(folder / made, tmp_path)
    shutil.copytree(folder / "start", tmp_path / "start")
    overlay = OVERLAY.replace("processes: 1", "processes: 2").replace("keep: best", "keep: last, lag: 1")
    (tmp_path / "overlay.yaml").write_text(overlay.replace("shaping: none", "shaping: segcost"))
    run(tmp_path, "whole")
    run_and_kill(tmp_path, "killed", after=3)
    run(tmp_path, "killed")
    assert same_weights(tmp_path, "whole", "killed") and same_files(tmp_path, "whole", "killed")
    assert library_of(tmp_path, "whole") == library_of(tmp_path, "killed") != SkillLibrary()
