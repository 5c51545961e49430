"""``skillpress compare``: paired tests on the same tasks; everything else is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.evaluation.statistics.power import tasks_for
from skillpress.pipeline import exit_codes


def shares(folder: Path, budget: int) -> float:
    episodes = read_rollouts(folder / "rollouts.parquet")
    return sum(e.won and len(e.steps) <= budget for e in episodes) / len(episodes)


def test_two_evaluations_are_compared_at_every_budget_with_what_each_figure_is_divided_by(
    evaluate, policy: str, tmp_path: Path, capsys
) -> None:
    steps = ("--set", "environment.max_steps=8")
    floor = evaluate("floor", "--agent", "explorer", *steps)
    mine = evaluate("mine", "--model", policy)
    capsys.readouterr()
    assert main(["compare", str(floor), str(mine), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    text = (tmp_path / "out" / "comparison.md").read_text()
    assert printed.startswith(text)
    rows = json.loads((tmp_path / "out" / "comparison.json").read_text())["rows"]
    assert [(row["tasks"], row["success"]) for row in rows] == [
        ("all", "within 3"), ("all", "within 5"), ("all", "within 8 (Pass@1)"), ("all", "SC@3"),
    ]  # fmt: skip
    for row, budget in zip(rows, (3, 5, 8), strict=False):
        assert row["first"] == pytest.approx(shares(floor, budget))
        assert row["second"] == pytest.approx(shares(mine, budget))
        assert row["test"]["difference"] == pytest.approx(row["second"] - row["first"])
        assert row["divided_by"] == "30 episodes (10 tasks, 1 training of each)"
    assert rows[3]["divided_by"] == "10 verdicts (10 tasks, 1 training of each)"
    assert "| other trainings |" in text and "not tested, with one training of each method" in text
    assert "policy.rendering is 'paper' and not 'compact'" in text and "sampling.slots" not in text


def test_several_trainings_say_what_holds_for_others(evaluate, policy: str, tmp_path: Path) -> None:
    steps = ("--set", "environment.max_steps=8")
    pairs = []
    for seed in ("0", "1"):
        floor = evaluate(f"floor{seed}", "--agent", "explorer", *steps, "--seed", seed)
        pairs.append([str(floor), str(evaluate(f"mine{seed}", "--model", policy, "--seed", seed))])
    out = tmp_path / "out"
    assert main(["compare", *pairs[0], "--pair", *pairs[1], "--output", str(out)]) == 0
    (*_, row, _) = json.loads((out / "comparison.json").read_text())["rows"]
    assert row["test"]["trainings"]["seeds"] == 2 and row["test"]["only_first"] is None
    assert row["divided_by"] == "60 episodes (20 tasks, 2 trainings of each)"


def test_what_is_not_the_same_is_not_compared(evaluate, tmp_path: Path, capsys) -> None:
    base = evaluate("base", "--agent", "explorer")
    others = {
        "votes": (("--votes", "1"), "k, episodes of each task in a run is 3 in one and 1 in the other"),
        "budget": (("--set", "environment.max_steps=9"), "the step budget T is 30 in one and 9"),
        "tasks": (("--tasks", "4"), "did not play the same tasks (6 are in only one of them"),
        "seed": (("--seed", "5"), "did not play the same tasks (20 are in only one of them"),
    }
    for name, (options, message) in others.items():
        other = evaluate(name, "--agent", "explorer", *options)
        capsys.readouterr()
        assert main(["compare", str(base), str(other), "--output", str(tmp_path / "out")]) == (
            exit_codes.USER_ERROR
        )
        assert message in capsys.readouterr().err
    assert main(["compare", str(base), str(base)]) == exit_codes.USER_ERROR
    assert "was named twice" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_tasks_that_differ_in_a_prompt_are_the_same_by_the_fields_that_are_named(
    explored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two files of a program's tasks may have one order and two prompts."""
    other, out = tmp_path / "other", tmp_path / "out"
    shutil.copytree(explored, other)
    asked = [
        replace(task, spec={**task.spec, "prompt": "Be brief."})
        for task in read_tasks(other / "tasks.parquet")
    ]
    write_tasks(other / "tasks.parquet", asked)
    compare = ["compare", str(explored), str(other), "--output", str(out)]
    assert main(compare) == exit_codes.USER_ERROR
    assert "10 are in only one of them" not in (said := capsys.readouterr().err) and "--identity id" in said
    assert main([*compare, "--identity", "idd"]) == exit_codes.USER_ERROR
    assert f"--identity: no task of {explored} has a field idd" in capsys.readouterr().err
    assert main([*compare, "--identity", "id"]) == 0
    text = (out / "comparison.md").read_text()
    assert "- Tasks with the same id differ in: prompt." in text
    assert "- Power: 45.9 points or more are found with 80% (10 tasks won half of the time" in text
    assert "; 5 points would need " in text


def test_a_difference_is_told_with_the_tasks_that_it_would_need(
    evaluated: Path, explored: Path, tmp_path: Path
) -> None:
    assert main(["compare", str(explored), str(evaluated), "--output", str(tmp_path)]) == 0
    (difference,) = (
        abs(row["test"]["difference"])
        for row in json.loads((tmp_path / "comparison.json").read_text())["rows"]
        if row["success"].endswith("(Pass@1)")
    )
    needed = f"{100 * difference:.3g} points would need {tasks_for(difference, 3):,} tasks (Pass@1)."
    assert needed in (tmp_path / "comparison.md").read_text()
