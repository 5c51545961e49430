"""The world of the tool-using program: a player that never errs repairs everything, by one routine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.program_tools.agent import Repository, compact, make_task, verify
from benchmarks.program_tools.model import LONGEST, save_fresh
from benchmarks.program_tools.player import write_log
from skillpress.core.trajectory import Skills
from skillpress.environments.calls.rules import read_rules
from skillpress.logs.episodes import gather
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log, read_log
from skillpress.models.policy.policy import load_policy
from skillpress.training.imitation.episodes import EpisodeSamples

TASKS = [make_task(number, "test") for number in range(30)]
ROUND = ("Test", "Search", "View", "Edit", "Test")


def log_of(folder: Path, errs: float) -> Path:
    file = folder / "log.jsonl"
    write_log(file, TASKS, errs, most_calls=14, seed=0)
    return file


def test_a_player_that_never_errs_repairs_one_or_two_functions_by_the_same_routine(
    tmp_path: Path, repository: Path
) -> None:
    rules = read_rules(repository / "benchmarks/program_tools/rules.yaml")
    found: Log = read_log([log_of(tmp_path, 0.0)], rules, Wanted(), most_bad=0.0)
    assert len(found) == len(TASKS) and all(trace.success for trace in found.traces)
    routines: set[Sequence[str]] = {(*ROUND, "Finish"), (*ROUND, *ROUND[1:], "Finish")}
    assert set[Skills](found.skills) == routines


def test_a_player_that_errs_often_fails_and_its_won_runs_can_be_learned(tmp_path: Path) -> None:
    gathered = gather([str(log_of(tmp_path, 0.3))], "won", tmp_path)
    assert 0 < gathered.won < len(TASKS)
    save_fresh(tmp_path / "fresh", seed=0)
    made = EpisodeSamples(load_policy(tmp_path / "fresh"), LONGEST - 8, 8, compact)
    assert len(made.of(gathered, tmp_path / "recorded.arrow")) == made.counts.responses
    assert made.counts.episodes == gathered.won
    assert (made.counts.unlike, made.counts.too_long, made.counts.refused) == (0, 0, 0)


def test_the_editor_sets_what_was_viewed_and_the_verifier_runs_the_tests() -> None:
    task = TASKS[0]
    repository = Repository.of(task)
    (name, value), *_ = repository.failing
    path = repository.call("shell", {"command": f"grep {name}"})
    change = {"command": "set", "path": path, "name": name, "value": value}
    assert repository.call("edit", change) == "wrong"
    repository.call("edit", {"command": "view", "path": path})
    assert repository.call("edit", change) == "changed" and (name, value) not in repository.failing
    printed = json.dumps({"files": task["files"]})
    assert verify(task, printed, "", [])["success"] is False
    solved = {file: {key: task["wanted"][key] for key in held} for file, held in task["files"].items()}
    assert verify(task, json.dumps({"files": solved}), "", [1])["success"] is True
