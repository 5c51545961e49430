"""Outcomes of a run, by hand and compared with the evaluation's own code."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.statistics.budget import success_against_budget
from skillpress.evaluation.statistics.success import pass_at_1, self_consistency
from skillpress.evaluation.study.outcomes import measured, of_class, scores

T, RUNS, VOTES = 8, 2, 3
WON_AT = st.lists(
    st.lists(st.integers(0, T), min_size=RUNS * VOTES, max_size=RUNS * VOTES), min_size=1, max_size=5
)


def frame(tasks: list[list[int]]) -> pl.DataFrame:
    names = [f"t{number}" for number in range(len(tasks))]
    return pl.DataFrame({"task_id": names, "won_at": pl.Series(tasks, dtype=pl.List(pl.UInt8))})


def episodes(tasks: list[list[int]]) -> pl.DataFrame:
    """The same outcomes by the evaluation's code."""
    return pl.DataFrame(
        [
            {
                "training_seed": 0,
                "run": number // VOTES,
                "task_id": f"t{task}",
                "rollout_index": number % VOTES,
                "won": at > 0,
                "length": at or T,
            }
            for task, wins in enumerate(tasks)
            for number, at in enumerate(wins)
        ]
    )


def test_a_worked_case() -> None:
    won_at = frame([[2, 0, 6, 0, 0, 8]])
    value = {
        name: scores(won_at, name, T, VOTES)["score"][0] for name in ("pass_at_1", "within_5", "sc_at_k")
    }
    assert value == {
        "pass_at_1": 0.5,
        "within_5": pytest.approx(1 / 6),
        "sc_at_k": 0.5,  # two of three in the first run, one of three in the second
    }
    # Won at 2: solved at 7 of 8 budgets; at 6: 3 of 8; at 8: 1 of 8.
    assert scores(won_at, "budget_area", T, VOTES)["score"][0] == pytest.approx((7 + 3 + 1) / 8 / 6)


@given(WON_AT)
def test_means_over_tasks_are_the_evaluations_figures(tasks: list[list[int]]) -> None:
    table = episodes(tasks)
    wanted = {
        "pass_at_1": pass_at_1(table).mean,
        "sc_at_k": self_consistency(table, VOTES).mean,
        "budget_area": success_against_budget(table, T).area,
        "within_5": success_against_budget(table, T).points[5],
    }
    for name, value in wanted.items():
        assert scores(frame(tasks), name, T, VOTES)["score"].mean() == pytest.approx(value)


def test_a_class_holds_what_lies_in_it() -> None:
    rows = pl.DataFrame({"kind": ["ood/heat", "ood/cool", "iid/heat"]})
    assert of_class(rows, "ood").height == 2
    assert of_class(rows, "ood/heat").height == 1
    assert of_class(rows, "").height == 3


def test_a_fact_is_the_mean_over_the_tasks_won_episodes_and_tasks_without_any_are_left_out() -> None:
    facts = pl.DataFrame(
        {"task_id": ["a", "b", "c"], "values": [[1.0, 0.0, 0.0], [1.0], []]},
        schema={"task_id": pl.String, "values": pl.List(pl.Float32)},
    )
    found = dict(measured(facts).iter_rows())
    assert found == {"a": pytest.approx(1 / 3), "b": 1.0}
