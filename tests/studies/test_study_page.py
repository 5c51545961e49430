"""The page of the study agrees with its record and its plan, and with the implications of a made-up
record."""

from __future__ import annotations

import re
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import stdev

import polars as pl
import pytest

from docs.made import UnknownPartError, made_anew
from skillpress.core.storage import read_json
from skillpress.evaluation.paper.methods import methods
from skillpress.evaluation.study.plan import Claim, read_plan
from skillpress.experiment.params import check_params
from skillpress.pipeline.study.store import Record
from studies.statistics.behavior_signs import TRAINED
from studies.statistics.compression import MODEL
from studies.statistics.contrasts import OPEN, YES, ClaimEvidence
from studies.study.__main__ import files, read_study
from studies.study.page import parts
from studies.study.results import assembled
from studies.study.sections import findings, levels, what_would_tell
from studies.study.summary import starts, summary
from tests.support.pipeline.small_study import outcomes, recorded, runs_of, write_plan


def test_page_and_figures_are_what_the_record_gives(repository: Path) -> None:
    for path, text in files(read_study(repository), repository).items():
        assert (repository / path).read_text() == text, f"{path}: run python -m studies.study"


@pytest.mark.parametrize("folder", ["study", "critical", "cooking_again", "language_model"])
def test_a_plans_word_for_a_method_is_what_its_parameters_say(repository: Path, folder: str) -> None:
    """The four methods of the paper are its rows, except for keys that a benchmark changes in all of them; no
    two methods of a benchmark have one name."""
    runs = [
        run for run in runs_of(read_plan(repository / "params" / folder)) if run.params["training"]["steps"]
    ]
    for benchmark in {run.benchmark for run in runs}:
        of_method = {run.method: run.params for run in runs if run.benchmark == benchmark}
        called = methods([check_params(params, benchmark) for params in of_method.values()])
        assert len({one.name for one in called}) == len(of_method)
        papers = {name: one for name, one in zip(of_method, called, strict=True) if name in TRAINED}
        assert {name: one.row for name, one in papers.items()} == {name: name for name in papers}
        base = {str(one.differing) for one in papers.values()}
        assert len(base) <= 1, base


def test_the_page_states_the_model_that_is_fitted(repository: Path) -> None:
    page, tables = (
        (repository / "studies/study" / name).read_text(encoding="utf-8") for name in ("plan.md", "tables.md")
    )
    assert MODEL == "gap ~ measure + length + corpus + step"
    assert page.count(f"`{MODEL}`") == 2, "the plan and its amendment"
    assert tables.count(f"`{MODEL}`") == 1, "the findings"
    assert not re.search(r"gap ~ (?!measure \+ length \+ corpus \+ step)", page)


def test_the_null_simulation_stands_on_the_page_as_it_was_recorded(repository: Path) -> None:
    page = (repository / "studies/study/plan.md").read_text(encoding="utf-8")
    recorded = read_json(repository / "studies/statistics/compression_null.json")
    rows = {"length": "length", "length_and_corpus": "length and corpus",
            "within_seeds": "length, corpus and the seed's level"}  # fmt: skip
    for name, words in rows.items():
        cells = (recorded[truth]["partial_correlation"][name] for truth in ("alike", "seeds_differ"))
        shown = (f"{each['mean']:+.2f} ({each['low']:+.2f} to {each['high']:+.2f})" for each in cells)
        assert f"| {words} | {' | '.join(shown)} |" in page


WON = {"grpo": ([3, 0], [0, 0], [2, 0], [0, 0]), "segcost": ([3, 0], [5, 0], [2, 1], [0, 0])}


def made_up(repository: Path, folder: Path, seeds: tuple[int, ...], other_start: int = 0):
    """Two methods on one benchmark; segcost wins half of the episodes, grpo a quarter, on each seed.

    Args:
        other_start: the seed on which grpo had another start than segcost.
    """
    plan = read_plan(write_plan(folder, runs={"small": ["grpo", "segcost"]}))
    chosen = [run for run in runs_of(plan) if run.seed in seeds]
    frames = [
        outcomes(*WON[run.method]).with_columns(
            id=pl.lit(run.name),
            start=outcomes(*WON[run.method if run.seed == other_start else "segcost"])["start"],
        )
        for run in chosen
    ]
    return assembled(plan, Record(tuple(map(recorded, chosen)), pl.concat(frames)), repository)


def test_a_difference_is_that_of_the_wins_and_is_given_with_its_seeds(
    repository: Path, tmp_path: Path
) -> None:
    lines = list(findings(made_up(repository, tmp_path, (10, 11)), "q1_which"))
    (row,) = [line for line in lines if line.startswith("| small")]
    assert "`segcost` > `grpo` | +25.0" in row  # 4 of 8 episodes against 2 of 8
    assert "| 2 of 2 |" in row


def test_without_all_seeds_there_is_no_verdict(repository: Path, tmp_path: Path) -> None:
    lines = list(findings(made_up(repository, tmp_path, (10,)), "q1_which"))
    assert any("| 1 of 2 | – | – | runs are missing |" in line for line in lines)


@pytest.mark.parametrize(
    ("margin", "claims", "words"),
    [
        (0.01, 1, "; 10 seeds would show 1 point"),
        (0.01, 3, "; 14 seeds would show 1 point"),
        (0.02, 1, "; 5 seeds would show 2 points"),
        (0.0001, 1, "; over 1,000 seeds would be needed"),
    ],
)
def test_an_open_claim_says_how_many_seeds_its_corrected_test_needs(
    margin: float, claims: int, words: str
) -> None:
    claim = Claim(
        question="q", family="f", benchmark="b", first="one", second="two", expect="higher", of_class=""
    )
    seen = (0.01 * sqrt(7 / 8), -0.01 * sqrt(7 / 8)) * 4
    found = ClaimEvidence(claim=claim, planned=8, margin=margin, difference=0.0, per_seed=seen, verdict=OPEN)
    assert stdev(seen) == pytest.approx(0.01)
    assert what_would_tell(found, claims) == words
    assert what_would_tell(replace(found, verdict=YES), claims) == ""


def test_levels_have_the_floors_and_every_method(repository: Path, tmp_path: Path) -> None:
    rows = [line.split(" | ")[0] for line in levels(made_up(repository, tmp_path, (10, 11)), "small")]
    assert rows[-4:] == ["| Random explorer", "| Imitation start", "| `grpo`: plain", "| `segcost`: phrases"]


def test_a_gain_is_paired_with_the_start_of_the_same_run(repository: Path, tmp_path: Path) -> None:
    """Both start from SegCost's successes, half of the episodes."""
    rows = {line.split(" | ")[0]: line for line in levels(made_up(repository, tmp_path, (10,)), "small")}
    assert rows["| `grpo`: plain"].endswith(" | -25.0 |")
    assert rows["| `segcost`: phrases"].endswith(" | +0.0 |")
    assert rows["| Imitation start"].endswith(" | – |")


def test_the_summary_counts_verdicts_by_question_and_benchmark(repository: Path, tmp_path: Path) -> None:
    (row,) = [line for line in summary(made_up(repository, tmp_path, (10, 11))) if "Q1" in line]
    # Nothing varies between the two seeds, so there is no interval.
    assert row == "| Q1. Which? | 1 × cannot be told | – |"


def test_the_summary_says_where_runs_are_missing(repository: Path, tmp_path: Path) -> None:
    (row,) = [line for line in summary(made_up(repository, tmp_path, (10,))) if "Q1" in line]
    assert row == "| Q1. Which? | runs are missing | – |"


def test_a_seed_with_one_start_is_not_named(repository: Path, tmp_path: Path) -> None:
    assert not list(starts(made_up(repository, tmp_path, (10, 11))))


def test_a_seed_with_two_starts_is_named_with_its_methods(repository: Path, tmp_path: Path) -> None:
    (line,) = starts(made_up(repository, tmp_path, (10, 11), other_start=11))
    assert line == "- small, seed 11: 2 starts. One of them is that of `grpo` (1 of 2 runs)."


def test_a_marker_that_nothing_makes_is_refused(repository: Path, tmp_path: Path) -> None:
    of_two_seeds = made_up(repository, tmp_path, (10, 11))
    known = parts(of_two_seeds, again=of_two_seeds)
    with pytest.raises(UnknownPartError, match="no part 'nothing'"):
        made_anew("<!-- made: nothing -->\n<!-- end -->", Path("page.md"), known)
