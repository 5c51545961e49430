"""The paper's tables: the printed figures, and ours beside them."""

from __future__ import annotations

import csv
from collections import defaultdict
from io import StringIO

import pytest

from skillpress.core.trajectory import Task
from skillpress.evaluation.paper.layout import METHODS, PaperPanel, paper_row, paper_tables
from skillpress.evaluation.paper.main_table import table_1
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.paper.text import csv_text, grid, markdown
from skillpress.evaluation.statistics.behavior import BehaviorFigure
from skillpress.evaluation.statistics.episodes import evaluation_steps, pooled

PRINTED = ("grpo", "round_length", "segcost", "segcost_no_buffer")


def play(outcomes, votes=1, seeds=(0,), stratum="", **wins):
    """The same episodes for every seed."""
    frame = outcomes(wins, votes)
    steps = pooled(evaluation_steps(frame, seed) for seed in seeds)
    return MethodEpisodes(
        steps, {name: Task(name, "environment", 0, {}, "test", stratum) for name in wins}, votes
    )


def printed(table, environment, *keys):
    """Each printed method's column of a table, as numbers."""
    rows = [paper_row(table, environment, key) for key in keys]
    return [[float(row[method].split(" ")[0]) for row in rows] for method in PRINTED]


@pytest.mark.parametrize(("table", "environment", "keys"), [
    (8, "textworld_cooking", ("failures_burned", "failures_wrong_processing", "failures_timeout")),
    (9, "countdown", ("failures_timeout", "failures_stuck")),
])  # fmt: skip
def test_the_papers_failure_modes_add_up_to_100(table, environment, keys):
    for column in printed(table, environment, *keys):
        assert sum(column) == pytest.approx(100, abs=0.15)


def test_the_papers_closing_operations_add_up_to_the_successes_beside_them():
    keys = [f"closing_{name}" for name in ("add", "subtract", "multiply", "divide")]
    for method, column in zip(PRINTED, printed(4, "countdown", *keys), strict=True):
        successes = {paper_row(4, "countdown", key)[method].split(" of ")[1] for key in keys}
        assert successes == {str(int(sum(column)))}


def test_the_papers_table_2_repeats_tables_6_8_and_9_rounded():
    for environment, table, keys in [
        ("alfworld", 6, ("success_length", "invalid_rate_success", "repetition_rate_success")),
        ("textworld_cooking", 8, ("success_length", "failures_burned")),
        ("countdown", 9, ("zero_reset_share", "multiply_divide_share")),
    ]:
        for short, long in zip(
            printed(2, environment, *keys), printed(table, environment, *keys), strict=True
        ):
            assert short == pytest.approx(long, abs=0.051)


def test_a_split_of_the_test_tasks_is_a_column_of_table_1(outcomes):
    both = play(outcomes, votes=3, a="110", b="100", c="111")
    strata = {"a": "iid/clean", "b": "iid/look", "c": "ood/clean"}
    tasks = {name: Task(name, "environment", 0, {}, "test", stratum) for name, stratum in strata.items()}
    iid, ood = table_1(MethodEpisodes(both.steps, tasks, 3))
    assert (iid.key, iid.label, iid.value, iid.episodes) == ("iid", "IID (SC@3)", 0.5, 6)
    assert (ood.key, ood.label, ood.value, ood.episodes) == ("ood", "OOD (SC@3)", 1.0, 3)


def test_the_deviation_is_over_runs_of_one_seed_and_over_seeds_of_several(outcomes):
    one = play(outcomes, a="10", b="11")
    (figure,) = table_1(one)
    assert (figure.key, figure.label) == ("all", "Pass@1")
    assert figure.value == 0.75
    assert figure.std == pytest.approx(0.5 / 2**0.5)  # of 1 and 0.5
    (figure,) = table_1(play(outcomes, seeds=(0, 1, 2), a="10", b="11"))
    assert figure.std == pytest.approx(0)  # every seed's mean is 0.75


def test_a_task_that_several_seeds_played_is_one_task_in_the_interval(outcomes):
    (one,), (three,) = (table_1(play(outcomes, seeds=seeds, a="1", b="0")) for seeds in ((0,), (0, 1, 2)))
    assert (one.low, one.high) == (three.low, three.high)
    assert three.episodes == 3 * one.episodes


def steps_panel(play):
    return (BehaviorFigure("steps", "Length", 1.5, "steps", play.episodes["length"].sum(), "", 1.0, 2.0),)


@pytest.fixture
def tables(outcomes):
    plays = {"environment": {"explorer": play(outcomes, a="10"), "segcost": play(outcomes, a="11")}}
    return paper_tables(
        plays,
        {
            "environment": (
                PaperPanel(1, "Environment", table_1),
                PaperPanel(9, "The environment", steps_panel),
            )
        },
    )


def test_every_table_has_a_place_for_every_method(tables):
    main, other = map(grid, tables)
    assert [row.label for row in main.rows] == list(METHODS.values())
    assert main.heads == ("Environment: Pass@1",)
    assert other.heads == tuple(METHODS.values())
    assert [row.label for row in other.rows] == ["Length, steps"]


def test_markdown_and_csv_hold_the_figure_its_interval_and_its_episodes(tables):
    text = markdown(tables, ["a note"])
    assert "- a note" in text
    assert "| Random explorer | **50.0% ± 70.7**<br>5.5% to 94.5%<br>n = 2 |" in text  # Wilson, one task
    assert "| GRPO | – |" in text
    rows = list(csv.DictReader(StringIO(csv_text(tables, "last"))))
    found = defaultdict(dict)
    for row in rows:
        found[row["table"]][row["method"]] = row
    assert {method: float(row["value"]) for method, row in found["1"].items()} == {
        "explorer": 0.5,
        "segcost": 1.0,
    }
    assert found["9"]["explorer"]["checkpoint"] == ""  # nothing was trained
    assert found["9"]["segcost"] == {
        "table": "9", "environment": "environment", "figure": "steps", "method": "segcost",
        "checkpoint": "last",
        "text": "1.50", "value": "1.5", "low": "1.0", "high": "2.0", "unit": "steps",
        "episodes": "2", "paper": "",
    }  # fmt: skip
