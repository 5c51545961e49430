"""What is measured of the start policies of each benchmark, and what is still to be measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.evaluation.analysis.choice import Choice, Ways
from studies.critical.choices import FILE, LOG, LOGS, OVERLAYS, read_choices
from studies.critical.measure_choices import SEEDS, choice_of_log, missing
from studies.critical.page import choices, logs

HOLDS = Choice(
    tasks=128, won_twice=100, differ=80, deviation=1.0, of_length=0.1, of_others=0.5, per_segment=0.05
)


def test_the_table_says_what_its_figures_are_divided_by() -> None:
    rows = list(choices({"countdown": {"20": HOLDS, "21": HOLDS}}))
    shares = "80.0% (80.0% to 80.0%; 200 tasks) | 5.0% (5.0% to 5.0%; 200 tasks)"
    assert rows[2].startswith(f"| `countdown` | 2 | 200 of 256 | {shares} |")
    assert rows[-1].startswith("Not measured yet: `equal`, `shorter`") and "`countdown`" not in rows[-1]
    assert list(choices({})) == ["No start policy is measured yet."]


def test_what_is_measured_is_not_measured_again() -> None:
    found = {"equal": {str(SEEDS[0]): HOLDS}}
    left = list(missing(found))
    assert left[: len(SEEDS) - 1] == [("equal", seed) for seed in SEEDS[1:]]
    assert len(left) == len(SEEDS) * len(OVERLAYS) - 1


def test_every_overlay_is_there(repository: Path) -> None:
    for overlays in OVERLAYS.values():
        assert all((repository / "params" / f"{overlay}.yaml").is_file() for overlay in overlays)


def test_a_wrong_file_is_refused_with_its_field(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"countdown": {"20": {"tasks": "many"}}}')
    with pytest.raises(StorageError, match=r"choices\.json: countdown\.20\.tasks"):
        read_choices(tmp_path)


def run(task: int, tools: str, reward: float) -> dict[str, object]:
    """A run as tau-bench writes it, with a tool for each letter."""
    calls = [{"role": "assistant", "tool_calls": [{"function": {"name": tool, "arguments": "{}"}}]}
             for tool in tools]  # fmt: skip
    return {"task_id": task, "reward": reward, "info": {}, "traj": calls, "trial": 0}


def test_a_logs_successes_are_compared_within_its_tasks(tmp_path: Path) -> None:
    """Task 0 is won twelve times alike, task 1 by two orders of equal length, task 2 once and lost once."""
    runs = [*[run(0, "ab", 1.0)] * 12, run(1, "ab", 1.0), run(1, "ba", 1.0)]
    runs += [run(2, "abc", 1.0), run(2, "ab", 0.0), run(3, "c", 0.0)]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    found = choice_of_log(tmp_path / "runs.json", None)
    assert (found.tasks, found.won_twice, found.differ) == (4, 2, 1)
    assert found.ways == Ways(several=1, equal_length=1, differ=1)
    assert found.per_segment == pytest.approx(1 / 3)  # the longest run has 3 steps


def test_the_table_of_logs_links_what_was_read() -> None:
    one = replace(HOLDS, ways=Ways(several=18, equal_length=2, differ=0))
    *_, row = logs({"tau_bench": {LOG: one}})
    assert row.startswith("| [tau-bench, airline, gpt-4o, four runs of a task](https://github.com/")
    assert row.endswith("/historical_trajectories/gpt-4o-airline.json) | 128 | 100 | 18 | 2 | 0 |")


def test_every_public_log_is_measured(repository: Path) -> None:
    known = read_choices(repository / "studies" / "critical")
    assert all(known[name][LOG].ways is not None for name in LOGS)
