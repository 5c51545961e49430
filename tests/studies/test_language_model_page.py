"""The language model's page: what made-up records with known answers imply, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from skillpress.evaluation.paper.methods import method
from skillpress.evaluation.study.plan import read_plan
from skillpress.experiment.params import check_params
from skillpress.pipeline.study.store import Record, read_record
from studies.language_model.__main__ import PAGE, PLAN, RECORD, TABLES, files
from studies.language_model.behaviour import STEPS
from studies.language_model.curves import draw, means, raw
from studies.language_model.names import NAMES, QUESTION
from studies.language_model.page import parts
from studies.language_model.trainings import corrected
from studies.statistics.contrasts import YES
from studies.study.results import Results, assembled, read_results
from tests.support.pipeline.small_study import recorded, runs_of

WON = {"imitation": 1, "grpo": 3, "segcost": 2}
"""How many of a seed's four puzzles a method wins; every start wins one."""
CURVE = {"step": [float(step) for step in range(1, 11)], "success": [0.2] * 5 + [0.6] * 5}


def test_the_page_calls_a_training_by_its_parameters(repository: Path) -> None:
    record = read_record(repository / RECORD)
    trained = [run for run in record.runs if run.params["training"]["steps"]]
    assert {run.method for run in trained} == set(NAMES)
    for run in trained:
        params = check_params(run.params, run.id)
        assert method(params).row == run.method
        assert NAMES[run.method].endswith(f", {params.training.steps} steps")


def made_up(
    repository: Path, seeds: tuple[int, ...] = (1, 2, 3), times: int = 1, explorer: int = 0
) -> Results:
    """Args:
    times: how many times four puzzles each seed has, and the wins with them.
    explorer: wins of the random explorer among four puzzles.
    """
    plan = read_plan(repository / PLAN)
    runs = [run for run in runs_of(plan) if run.seed in seeds]
    outcomes = [
        outcomes_of(WON[run.method], run.seed, times, explorer).with_columns(id=pl.lit(run.name))
        for run in runs
    ]
    records = tuple(replace(recorded(run), curve=CURVE) for run in runs)
    return assembled(plan, Record(records, pl.concat(outcomes)) if runs else Record(), repository)


def outcomes_of(won: int, seed: int, times: int, explorer: int) -> pl.DataFrame:
    def first(number: int) -> list[list[int]]:
        return [[2 if task < number * times else 0] for task in range(4 * times)]

    lists = {"explorer": first(explorer), "start": first(1), "trained": first(won)}
    ids = {"task_id": [f"{seed}-{task}" for task in range(4 * times)], "kind": ["3 numbers"] * (4 * times)}
    return pl.DataFrame(ids | lists, schema_overrides=dict.fromkeys(lists, pl.List(pl.UInt8)))


def test_page_and_figure_are_what_the_record_gives(repository: Path) -> None:
    found = read_results(repository, repository / PLAN, repository / RECORD)
    for path, text in files(found, repository).items():
        assert (repository / path).read_text() == text, f"{path}: run python -m studies.language_model"


def test_the_page_has_every_part(repository: Path) -> None:
    text = "".join((repository / page).read_text(encoding="utf-8") for page in (PAGE, TABLES))
    made = parts(made_up(repository)).keys()
    assert all(f"<!-- made: {name} -->" in text for name in made)


def test_each_method_is_compared_with_the_start_and_with_the_other(repository: Path) -> None:
    lines = [line for line in parts(made_up(repository))["claims"]() if "`" in line]
    assert [line.split(" | ")[0].rpartition(": ")[2] for line in lines] == [
        "`grpo` > `imitation`",
        "`segcost` > `imitation`",
        "`segcost` ≠ `grpo`",
    ]
    assert [line.split(" | ")[1].split()[0] for line in lines] == ["+50.0", "+25.0", "-25.0"]


def test_each_training_is_compared_with_its_own_start_puzzle_by_puzzle(repository: Path) -> None:
    _, _, *rows = parts(made_up(repository))["trainings"]()
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert [row[0] for row in cells] == [f"`{m}`, seed {s}" for m in ("grpo", "segcost") for s in (1, 2, 3)]
    assert {(row[1], row[2], row[3].split()[0], row[4]) for row in cells} == {
        ("25.0", "75.0", "+50.0", "0, 2"),
        ("25.0", "50.0", "+25.0", "0, 1"),
    }
    assert {row[5] for row in cells} == {"1"}, "one or two puzzles of four show nothing"


def test_wins_are_told_by_the_step_at_which_they_end(repository: Path) -> None:
    """Every win of the made-up record ends at step 2, and it says nothing of refused actions."""
    _, _, *rows = parts(made_up(repository))["behaviour"]()
    cells = {row.strip("| ").split(" | ")[0]: row.strip("| ").split(" | ")[1:] for row in rows}
    assert len(cells) == 6
    assert cells["`grpo`, seed 1"] == ["25.0 to 75.0", "0.0 to 0.0", "0.0 to 0.0", "– to –"]
    assert cells["`segcost`, seed 3"][0] == "25.0 to 50.0"


def test_the_columns_of_wins_are_all_steps_of_an_episode() -> None:
    steps = [step for first, last in STEPS.values() for step in range(first, last + 1)]
    assert steps == list(range(1, 7))


def test_trainings_that_are_missing_count_in_the_correction() -> None:
    """Three trainings whose p is 0.01 are corrected by six, as planned."""
    assert corrected([0.01] * 3, planned=6) == pytest.approx([0.06, 0.06, 0.06])


def test_a_line_is_the_mean_of_at_most_a_fifth_of_its_dots() -> None:
    """A fifth of ten dots is two, and no centred mean covers two: nothing is smoothed."""
    dots = raw(CURVE)
    assert means(dots) == dots
    longer = [(float(step), float(step % 3)) for step in range(1, 16)]
    assert [success for _, success in means(longer)[1:-1]] == pytest.approx([1.0] * 13)


def test_the_figure_has_a_dot_per_seed_and_recorded_step_and_says_where_none_is(repository: Path) -> None:
    methods, seeds, points, legend = 2, 3, 10, 1
    assert draw(made_up(repository)).count("<circle") == methods * seeds * (points + legend)
    assert draw(made_up(repository, seeds=())).count("no runs yet") == methods


@pytest.mark.parametrize(
    ("explorer", "said"),
    [
        (0, "6 of the 6 end above, 0 below, and 0 are not told apart (+50 to +75 points)"),
        (2, "3 of the 6 end above, 0 below, and 3 are not told apart (+0 to +25 points)"),
        (4, "0 of the 6 end above, 6 below, and 0 are not told apart (-50 to -25 points)"),
    ],
)
def test_what_is_said_of_a_random_player_follows_the_tests(
    repository: Path, explorer: int, said: str
) -> None:
    """GRPO wins 30 of 40 puzzles, and SegCost 20."""
    results = made_up(repository, times=10, explorer=explorer)
    assert said in " ".join(parts(results)["found"]())
    _, _, *rows = parts(results)["against_random"]()
    assert len(rows) == 6


def test_the_sentence_about_other_trainings_has_the_verdict_of_every_claim(repository: Path) -> None:
    for results in (made_up(repository, times=10), read_results(repository, PLAN, RECORD)):
        text = " ".join(parts(results)["found"]())
        for one in results.findings(QUESTION):
            said = "shown" if one.verdict == YES else one.verdict
            assert f"`{one.claim.second}` against `{one.claim.first}` " in text
            assert re.search(rf"`{one.claim.second}` against `{one.claim.first}` [^,]*, {said}", text)


def test_a_training_whose_puzzles_show_nothing_is_not_counted_as_a_rise(repository: Path) -> None:
    few, many = (" ".join(parts(made_up(repository, times=n))["found"]()) for n in (1, 10))
    assert few.startswith("0 of the 6 trainings are shown to win more")
    assert many.startswith("6 of the 6 trainings are shown to win more")


def test_while_trainings_are_missing_nothing_is_claimed(repository: Path) -> None:
    assert list(parts(made_up(repository, seeds=(1,)))["found"]()) == ["Trainings are missing: 4 of 6."]
