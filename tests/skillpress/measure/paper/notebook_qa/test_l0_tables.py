"""L0's tables agree with themselves, and its errors are where we say they are."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.measure.paper.notebook_qa.printed import AVERAGE, METRICS, SLIPS, TABLES, beside, printed
from skillpress.measure.paper.notebook_qa.scores import answer_figures, with_averages

MULTI_HOP = ("hotpotqa", "musique", "bamboogle")
OF_TABLE = {1: MULTI_HOP, 2: (*MULTI_HOP, "simpleqa")}


def test_every_figure_stands_once() -> None:
    assert printed().select(pl.exclude("percent")).is_unique().all()
    assert set(printed()["metric"]) == set(METRICS) and set(printed()["table"]) == set(TABLES)
    assert printed().group_by("table").len().sort("table")["len"].to_list() == [13 * 4, 6 * 11]


@pytest.mark.parametrize("table", TABLES)
def test_every_average_is_the_mean_of_its_row(table: int) -> None:
    for _, row in printed().filter(pl.col("table") == table).group_by("backbone", "method", "metric"):
        values = dict(row.select("dataset", "percent").iter_rows())
        if AVERAGE in values:
            mean = sum(values[name] for name in OF_TABLE[table]) / len(OF_TABLE[table])
            assert values[AVERAGE] == pytest.approx(mean, abs=0.00501)


def test_table_1s_rows_of_l0_are_table_2s_exact_match_of_7b() -> None:
    for method in ("L0-Scaffold", "L0-RL"):
        rows = printed().filter(pl.col("method") == method, pl.col("dataset") != AVERAGE)
        first = rows.filter(pl.col("table") == 1)
        second = rows.filter(pl.col("backbone") == "Qwen2.5-7B-Instruct", pl.col("metric") == "em")
        assert (
            dict(first.select("dataset", "percent").rows()).items()
            <= dict(second.select("dataset", "percent").rows()).items()
        )


def test_the_text_says_what_no_table_prints() -> None:
    figures = set(printed()["percent"])
    for slip in SLIPS:
        assert {float(figure) for figure in slip.printed.split(" to ")} <= figures
        assert not {float(figure) for figure in slip.said.split(" to ")} & figures


def test_f1_is_never_below_exact_match_nor_the_judge_below_f1() -> None:
    wide = printed().pivot(on="metric", index=["table", "backbone", "method", "dataset"], values="percent")
    assert (wide["f1"] >= wide["em"]).drop_nulls().all()
    assert (wide["judge"] >= wide["f1"]).drop_nulls().all()


ANSWERED = pl.DataFrame(
    [
        ("L0-RL", "hotpotqa", "The Iliad", ["Iliad"]),
        ("L0-RL", "hotpotqa", "no man", ["no"]),
        ("L0-RL", "musique", "no man", ["no", "nobody"]),
        ("L0-RL", "musique", None, ["no"]),
        ("L0-Scaffold", "hotpotqa", "Homer or Ovid", ["Homer"]),
    ],
    schema=["method", "dataset", "predicted", "answers"],
    orient="row",
)


def test_figures_of_answers_by_each_data_sets_rule() -> None:
    assert answer_figures(ANSWERED).rows() == [
        ("L0-RL", "hotpotqa", "em", 50.0, 2),
        ("L0-RL", "hotpotqa", "f1", 50.0, 2),
        ("L0-RL", "musique", "em", 0.0, 2),
        ("L0-RL", "musique", "f1", pytest.approx(100 / 3), 2),
        ("L0-Scaffold", "hotpotqa", "em", 0.0, 1),
        ("L0-Scaffold", "hotpotqa", "f1", pytest.approx(50.0), 1),
    ]


def test_an_average_needs_every_data_set() -> None:
    found = with_averages(answer_figures(ANSWERED), ("hotpotqa", "musique"))
    averages = found.filter(pl.col("dataset") == AVERAGE).rows()
    assert averages == [
        ("L0-RL", AVERAGE, "em", 25.0, 4),
        ("L0-RL", AVERAGE, "f1", pytest.approx((50 + 100 / 3) / 2), 4),
    ]


def test_our_figures_stand_beside_the_printed_ones() -> None:
    shown = beside(answer_figures(ANSWERED), 2, "Qwen2.5-7B-Instruct")
    assert shown.height == 22
    of = {row[2:5]: row[5:] for row in shown.iter_rows()}
    assert of["L0-RL", "hotpotqa", "em"] == (40.63, 50.0)
    assert of["L0-RL", "simpleqa", "judge"] == (80.40, None)
    assert of["L0-Scaffold", "musique", "f1"] == (14.65, None)
