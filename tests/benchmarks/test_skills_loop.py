"""The closed loop: its trial is on unseen tasks, its policies learn, and its record is what it measured."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np

from benchmarks.skills_loop.__main__ import ARMS, loop, mine
from benchmarks.skills_loop.policy import LinearPolicy, mounted
from benchmarks.skills_loop.world import COMMANDS, WorldEpisode, WorldStep, kinds, record_of, tasks

RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "skills_loop.json"


def test_the_tasks_of_the_trial_share_no_id_and_no_thing_with_those_of_the_sessions() -> None:
    half = kinds(24, 0)[12:]
    mined, trial = tasks(half, 240, "mineb"), tasks(half, 200, "trial")
    assert not {task.task_id for task in mined} & {task.task_id for task in trial}
    assert not {task.message for task in mined} & {task.message for task in trial}
    assert {task.kind for task in trial} == set(half)


def test_sessions_that_follow_a_routine_become_a_skill_that_the_reader_can_read() -> None:
    (kind, *_) = kinds(4, 1)
    steps = tuple(WorldStep(command, True) for command in kind.routine)
    (skill,) = mine([record_of(WorldEpisode(task, steps)) for task in tasks([kind], 12, "x")])
    assert skill.steps == kind.routine and {kind.verb, kind.noun} <= skill.words


def test_a_policy_learns_by_heart_and_a_folder_without_skills_mounts_none(tmp_path: Path) -> None:
    of = kinds(2, 0)
    policy = LinearPolicy(by_heart=True, rate=0.5, kinds=2, chance=np.random.default_rng(0))
    for task in tasks(of, 1500, "learn"):
        policy.play(task, (), learn=True)
    lengths = [len(policy.play(task, (), learn=False).steps) for task in tasks(of, 40, "play")]
    assert np.mean(lengths) < 5 and mounted(tmp_path) == [] and len(COMMANDS) == 20


def test_the_same_seed_gives_the_same_rows() -> None:
    small = Namespace(kinds=4, episodes=300, sessions=20, tasks=8, rollouts=2)
    assert loop(0, small) == loop(0, small)


def test_the_record_has_every_arm_with_an_interval_and_the_sessions_behind_it() -> None:
    record = json.loads(RECORD.read_text())
    assert len(record["rows"]) == record["setting"]["seeds"] >= 5
    for row in record["rows"]:
        assert set(row["success"]) == set(ARMS) and row["sessions_b"]["skills"] > 0
        for arm in ARMS[1:]:
            mean, low, high = row[arm]["points"]
            assert low <= mean <= high
            assert abs(mean - 100 * (row["success"][arm] - row["success"]["without"])) < 0.1


def test_the_page_says_what_the_record_says() -> None:
    rows = json.loads(RECORD.read_text())["rows"]
    page = " ".join((Path(__file__).parents[2] / "docs" / "skills_of_any_agent.md").read_text().split())
    ends = [[f(row[arm]["points"][0] for row in rows) for f in (min, max)] for arm in ARMS[1:3]]
    (low, high), (least, most) = [[f"{end:.0f}".replace("-", "−") for end in pair] for pair in ends]
    assert f"unseen tasks by {low} to {high} points over ten seeds" in page and len(rows) == 10
    assert f"changed it by {least} to {most}" in page
