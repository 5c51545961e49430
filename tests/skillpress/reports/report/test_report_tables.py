"""Tables show the evaluation's results, and the number of episodes behind them."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import polars as pl
import pytest

from skillpress.evaluation.analysis.mdl_report import phrase_table
from skillpress.reports.report.data import Curve
from skillpress.reports.report.figures import METRICS, learning_curve, success_lengths
from skillpress.reports.report.page import render_report
from skillpress.reports.report.tables import (
    NOTHING,
    behavior_table,
    buffer_note,
    comparison_table,
    failure_table,
    flat,
    mismatch_table,
    phrase_rows,
    shaping_notes,
    success_table,
)
from skillpress.reports.report.theme import looks
from skillpress.skills.fit import fit


def test_one_seed_shows_its_interval_and_several_show_their_range(experiment, ablation):
    single = success_table(experiment.policies).rows[-1]
    rate = experiment.policies[-1].summary.pass_at_1
    assert single.values[0].text == f"{rate.mean:.1%} ± {100 * rate.std:.1f}"
    assert single.values[0].note == f"{rate.low:.1%} to {rate.high:.1%}"
    assert single.note == "360 episodes"

    several = success_table(ablation.policies).rows[-1]
    rates = [p.summary.pass_at_1.mean for p in ablation.policies if p.method == several.label]
    assert several.values[0].text == f"{sum(rates) / 3:.1%}"
    assert several.values[0].note == f"{min(rates):.1%} to {max(rates):.1%}"
    assert several.note == "3 seeds, 1,080 episodes"


def test_a_trained_policys_line_says_which_checkpoint_it_is(experiment):
    start, trained = (
        replace(p, checkpoint=c) for p, c in zip(experiment.policies[-2:], ("", "best"), strict=True)
    )
    lines = success_table([start, trained]).rows
    assert lines[0].note.endswith("episodes") and lines[1].note.endswith("episodes, best")


def test_every_behaviour_figure_says_how_many_episodes_are_behind_it(experiment, ablation):
    for data in (experiment, ablation):
        notes = [value.note for row in behavior_table(data.policies).rows for value in row.values]
        assert notes
        assert all("n = " in note for note in notes)


def test_what_steps_came_to_has_an_interval_for_one_seed_and_a_range_for_several(experiment, ablation):
    rows = {row.label: row.values[-1] for row in failure_table(experiment.policies).rows}
    figure = next(f for f in experiment.policies[-1].failures if f.key == "steps_unfit")
    found = rows[figure.label]
    assert found.text == f"{figure.value:.1%}"
    assert found.note == f"{figure.low:.1%} to {figure.high:.1%}, n = {figure.episodes}"
    several = {row.label: row.values[-1] for row in failure_table(ablation.policies).rows}
    shares = [next(f.value for f in p.failures if f.key == "steps_unfit") for p in ablation.policies[-3:]]
    assert several[figure.label].note.startswith(f"{min(shares):.1%} to {max(shares):.1%}")


def test_the_direction_of_a_comparison_is_that_of_its_name(experiment):
    table = comparison_table(experiment.comparisons)
    assert table.rows[0].label == "imitation start against random explorer"
    assert table.rows[0].values[0].text.startswith("+")  # the imitation start was made the better one


def test_votes_have_a_line_of_their_own_below_the_budgets(experiment):
    pair, comparison = next(iter(experiment.comparisons.items()))
    voted = replace(comparison, votes=7, verdicts=comparison.tests[0])
    table = comparison_table({pair: voted})
    assert [row.label for row in table.rows] == [pair] + [""] * len(comparison.tests)
    assert table.rows[-1].note == "SC@7" and table.rows[-1].values == table.rows[0].values


def test_planned_tests_have_a_p_that_counts_all_of_them_and_others_have_none(experiment):
    """Holm: the smallest of two p doubles, and the other is at least as large."""
    first, second = experiment.comparisons.values()
    pairs = {
        "a": replace(
            first, tests=(first.tests[0], replace(first.tests[-1], bootstrap_p=0.02, mcnemar_p=0.3))
        ),
        "b": replace(second, tests=(replace(second.tests[-1], bootstrap_p=0.01, mcnemar_p=0.4),)),
    }
    early, whole, other = comparison_table(pairs).rows
    assert [value.note for value in early.values] == [""] * 5
    assert [value.note for value in whole.values] == ["", "", "corrected 0.020", "", "corrected 0.600"]
    assert [value.note for value in other.values] == ["", "", "corrected 0.020", "", "corrected 0.600"]
    (alone,) = comparison_table({"b": pairs["b"]}).rows
    assert {value.note for value in alone.values} == {""}, "one planned test needs no correction"


def test_learned_phrases_are_listed_by_the_bits_that_they_save():
    """ "ab" 30 times: 16 bits for a, b, c, d and 60 * 2 without it; 22 and 30 log2 5 with it (K = L = 4)."""
    corpus = [("a", "b")] * 30
    (row,) = phrase_rows(phrase_table(fit(corpus, "abcd", 4), corpus))
    assert (row.phrase, row.count) == (("a", "b"), 30)
    assert row.bits == pytest.approx(16 + 120 - 22 - 30 * log2(5))


def test_only_the_best_phrases_are_listed(experiment):
    rows = phrase_rows(experiment.phrases, top=2)
    assert len(rows) == 2 < len(experiment.dictionary.learned)
    assert rows[0].bits >= rows[1].bits >= max(row.bits for row in phrase_rows(experiment.phrases)[2:])


def test_parameters_are_listed_under_their_whole_key():
    assert flat({"seed": 0, "training": {"steps": 5}}) == [("seed", "0"), ("training.steps", "5")]


def test_a_learning_curve_is_the_mean_of_the_seeds_within_their_band(ablation):
    styles = looks(ablation.policies)
    figure = learning_curve(ablation.curves, METRICS[0], styles)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    for top, bottom, line in zip(lines[0::3], lines[1::3], lines[2::3], strict=True):
        assert (top.y >= line.y).all()
        assert (line.y >= bottom.y).all()
        assert line.line.color == styles[line.name].color


def test_histograms_of_lengths_are_shares_of_the_successes(experiment):
    figure = success_lengths(experiment.policies, looks(experiment.policies))
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert len(bars) == 3
    for bar in bars:
        assert sum(bar.customdata) == pytest.approx(1)


def measured(**columns: list[float | None]) -> Curve:
    ratios = {
        f"{kind}_ratio_{at}": [1.0, 1.0] for kind in ("token", "sequence") for at in ("p01", "p50", "p99")
    }
    frame = {f"mismatch/{name}": values for name, values in {**ratios, "mean": [0.02, 0.04]}.items()}
    return Curve("segcost", pl.DataFrame({**frame, "mismatch/largest": [0.3, 0.2], **columns}), seed=3)


def test_the_mismatch_is_shown_as_medians_with_the_largest_difference_of_any_step() -> None:
    (row,) = mismatch_table([measured()]).rows
    assert (row.label, row.note) == ("segcost", "seed 3")
    assert [(value.text, value.note) for value in row.values] == [
        ("0.03", "largest 0.3"), ("1", "1 to 1"), ("1", "1 to 1"), (NOTHING, ""),
    ]  # fmt: skip


def test_ratios_of_all_that_was_trained_are_shown_where_they_were_weighted() -> None:
    ratios = {"p01": [0.8, None], "p50": [1.0, 1.1], "p99": [1.5, 1.7]}
    weighted = {
        f"importance/{kind}_ratio_{at}": values
        for kind in ("token", "sequence")
        for at, values in ratios.items()
    }
    (row,) = mismatch_table([measured(**weighted, **{"importance/truncated": [0.01, 0.03]})]).rows
    assert [(value.text, value.note) for value in row.values[1:]] == [
        ("1.05", "0.8 to 1.6"), ("1.05", "0.8 to 1.6"), ("2.00%", ""),
    ]  # fmt: skip


def test_a_run_that_measured_no_mismatch_has_no_line(ablation) -> None:
    assert mismatch_table(ablation.curves).rows == ()


def with_parts(parts: list[float | None], method: str = "segcost", seed: int = 0) -> Curve:
    steps = list(range(1, len(parts) + 1))
    frame = pl.DataFrame(
        {"step": steps, "success": [0.9] * len(parts), "shaping_alone": [0.25] * len(parts)}
    ).with_columns(advantage_of_shaping_alone=pl.Series(parts, dtype=pl.Float64))
    return Curve(method, frame, seed)


def test_the_report_says_where_more_than_a_tenth_of_the_signal_is_about_costs_alone() -> None:
    """Steps without any advantage have no part."""
    (note,) = shaping_notes([with_parts([0.2, None, 0.4]), with_parts([0.5, 0.5], seed=1)])
    assert note.startswith(
        "segcost: 40% of the learning signal (the sum of |A|; mean of 4 training steps of 2"
    )
    assert "30% to 50% by seed" in note and "In 25% of the groups" in note


def test_a_tenth_or_less_and_curves_without_the_column_are_not_worth_a_note() -> None:
    without = Curve("grpo", pl.DataFrame({"step": [1, 2]}))
    assert not list(shaping_notes([with_parts([0.1, 0.1]), with_parts([None], "rloo"), without]))


def test_the_page_has_the_note(experiment) -> None:
    assert "Groups that are all won" not in render_report(experiment)
    loud = replace(experiment, curves=[with_parts([0.4])])
    assert "segcost: 40% of the learning signal" in render_report(loud)


def test_a_buffer_that_added_nothing_is_named_and_no_other() -> None:
    def curve(shares: list[float | None], method: str = "segcost") -> Curve:
        return Curve(method, pl.DataFrame({"dictionary/earlier_share": pl.Series(shares, dtype=pl.Float64)}))

    buffered = {"skills": {"buffer": 256}}
    said = buffer_note([curve([0.0, None, 0.0])], buffered)
    assert said.startswith("The buffer of 256 successes added nothing to the dictionary in any of 2 training")
    assert not buffer_note([curve([0.0, 0.1])], buffered)
    assert not buffer_note([curve([0.0])], {"skills": {"buffer": 0}})
    assert not buffer_note([curve([None])], buffered), "no dictionary was fitted"
    assert not buffer_note([curve([0.0]), curve([0.0], "other")], buffered), "whose buffer is it?"
    assert not buffer_note([], {})
