"""``skillpress compare``: paired tests on the same tasks; everything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.rollout_files import read_rollouts
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
    assert "| other trainings |" in text and "not tested, since each method is here with one" in text
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
        "tasks": (("--tasks", "4"), "did not play the same tasks (6 are in one alone"),
        "seed": (("--seed", "5"), "did not play the same tasks (20 are in one alone"),
    }
    for name, (options, message) in others.items():
        other = evaluate(name, "--agent", "explorer", *options)
        capsys.readouterr()
        assert main(["compare", str(base), str(other), "--output", str(tmp_path / "out")]) == (
            exit_codes.USER_ERROR
        )
        assert message in capsys.readouterr().err
    assert main(["compare", str(base), str(base)]) == exit_codes.USER_ERROR
    assert "is compared with itself" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
