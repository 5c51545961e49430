"""The verdict of a trial: refused until the plan is complete, corrected for the skills that are left out."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from skillpress.cli.trial.arms import arms_of
from skillpress.cli.trial.verdict import SkillTrialResult, headline, judge, lines
from skillpress.core.errors import UserError
from skillpress.skills.library.files import SkillFolder

SKILLS = [SkillFolder(name, "d", "b", Path(name), name) for name in ("one", "two", "three")]
ARMS = arms_of(SKILLS, each=True)
TASKS = [f"task-{number}" for number in range(40)]


def episodes(wins: dict[str, int], arms: int = len(ARMS)) -> pl.DataFrame:
    """An episode of each task and arm: the first ``wins`` tasks of an arm are won."""
    return pl.DataFrame([
        {"arm": arm.name, "task": task, "won": place < wins[arm.name], "calls": place + 1, "tokens": None,
         "seconds": None, "opened": "one two" if place < 10 and arm.name == "with" else ""}
        for arm in ARMS[:arms] for place, task in enumerate(TASKS)
    ], schema_overrides={"tokens": pl.Int64, "seconds": pl.Float64})  # fmt: skip


WINS = {"with": 30, "without": 20, "without one": 30, "without two": 23, "without three": 29}


def test_the_headline_counts_tasks_won_on_one_side_only() -> None:
    found = judge(episodes(WINS), TASKS, ARMS, 1, 0)
    assert headline(found["success"], 1).startswith("+25.0 points (")
    assert ", 40 tasks, 10 won only with, 0 only without, exact p = 0.002" in headline(found["success"], 1)


def test_each_skill_is_judged_beside_the_others_and_corrected_by_holm() -> None:
    found = judge(episodes(WINS), TASKS, ARMS, 1, 0)
    assert {name: each.difference for name, each in found["each"].items()} == pytest.approx(
        {"one": 0.0, "two": 7 / 40, "three": 1 / 40}
    )
    assert found["each"]["two"].p == pytest.approx(2 / 2**7)
    assert found["each_p"] == pytest.approx({"one": 1.0, "two": 6 / 2**7, "three": 1.0})


def test_costs_that_are_not_known_of_all_episodes_are_not_compared() -> None:
    found = judge(episodes(WINS), TASKS, ARMS, 1, 0)
    assert list(found["costs"]) == ["calls"] and found["costs"]["calls"].difference == 0.0
    assert found["opened"] == {"one": 0.25, "two": 0.25, "three": 0.0}


def test_there_is_no_verdict_before_the_last_planned_episode() -> None:
    with pytest.raises(UserError, match="3 of 200 episodes are missing, so there is no verdict yet"):
        judge(episodes(WINS).head(197), TASKS, ARMS, 1, 0)


@pytest.mark.parametrize(
    ("wins", "word"), [(30, "the skills help"), (22, "no difference shown"), (10, "the skills harm")]
)
def test_the_verdict_follows_the_exact_test_and_names_overlap(wins: int, word: str) -> None:
    said = judge(episodes({**WINS, "with": wins}), TASKS, ARMS, 1, 0)
    result = SkillTrialResult(**said, excluded={"t": "why"}, included={}, unchecked=("one",))
    assert result.word == word
    told = list(lines(result))
    assert told[1].startswith(f"verdict: {word} (5%, one look after the last planned episode)")
    assert told[-2:] == [
        "left out: 1 tasks that the skills were written from (t: why)",
        "overlap could not be checked: neither .evidence.json nor --logs say what one comes from",
    ]
