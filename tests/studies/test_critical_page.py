"""The critical experiment's page: what made-up records with known answers imply, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml

from skillpress.core.errors import StorageError
from skillpress.evaluation.study.plan import Claim, read_plan
from skillpress.pipeline.study.facts import FACT_SCHEMA
from skillpress.pipeline.study.store import Record
from studies.critical.__main__ import PAGE, TABLES, files
from studies.critical.figures import draw
from studies.critical.found import critical_in_short
from studies.critical.page import answer, compression, levels, parts, summary, verdict_of_agreement
from studies.critical.predictions import FILE, Prediction, disagreements, not_run, read_predictions
from studies.critical.results import PLAN, Critical, read_critical
from studies.statistics.contrasts import MISSING, OPEN, REVERSED, YES, ClaimEvidence
from studies.statistics.gap_of_runs import Agreement
from studies.study.results import assembled
from tests.support.pipeline.small_study import recorded, runs_of

SEEDS = [10, 11]
ROUTINES, UNSEEN = "measure_by_routine in known", "pass_at_1 in unseen"
PROBES = {
    "split": ["train", "unseen", "train"], "step": [0, 0, 6], "success": [0.5, 0.5, 0.5], "steps": [7.0] * 3,
    "corpus": [9, None, 9], "description_length": [3.0, None, 2.0], "certificate": [5.0, None, 4.0],
    "segments_per_skill": [0.5, None, 0.4],
}  # fmt: skip


def write_plan(folder: Path) -> Path:
    cell = {"seeds": SEEDS, "outcome": UNSEEN, "secondary": ["pass_at_1 in known", ROUTINES], "margin": 0.02}
    shared = {
        "benchmarks": {
            "long": {"words": "Long shortcuts", "base": ["workshop"], **cell},
            "other": {"words": "Others", "base": ["workshop", "dr_grpo"], **cell},
        },
        "methods": {
            name: {"words": name, "overlays": [name]} for name in ("grpo", "segcost", "round_length")
        },
    }
    contrast = {"first": "grpo", "second": "segcost"}
    question = {
        "title": "Does it?",
        "words": "Does it.",
        "runs": {"long": ["grpo", "segcost"], "other": ["grpo", "segcost", "round_length"]},
        "families": {
            "routines": [
                {**contrast, "expect": "higher", "benchmarks": ["long"], "outcome": ROUTINES, "margin": 0.1},
                {**contrast, "expect": "same", "benchmarks": ["other"], "outcome": ROUTINES, "margin": 0.1},
            ],
            "unseen": [{**contrast, "expect": "higher", "benchmarks": ["long"]}],
        },
        "counts_as_yes": "Yes.",
        "counts_as_no": "No.",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.yaml").write_text(yaml.safe_dump(shared, sort_keys=False))
    (folder / "q1_does_it.yaml").write_text(yaml.safe_dump(question, sort_keys=False))
    return folder


def outcomes_of(method: str) -> pl.DataFrame:
    """Four known tasks that all are won, and four unseen ones, of which segcost wins three and grpo one."""
    wins = {"grpo": 1, "segcost": 3}.get(method, 0)
    known = [(f"k{number}", "known", [3]) for number in range(4)]
    unseen = [(f"u{number}", "unseen/piece", [2 if number < wins else 0]) for number in range(4)]
    frame = pl.DataFrame(known + unseen, ["task_id", "kind", "trained"], orient="row")
    lists = pl.col("trained").cast(pl.List(pl.UInt8))
    return frame.with_columns(trained=lists, start=lists, explorer=lists)


def facts_of(method: str, seed: int) -> pl.DataFrame:
    """The routine wins one of four with grpo. With segcost it wins three, or all with seed 11."""
    share = {"grpo": 1, "segcost": 3 + (seed == 11)}.get(method, 0)
    rows = [(f"k{number}", "trained", "by_routine", [float(number < share)]) for number in range(4)]
    return pl.DataFrame(rows, FACT_SCHEMA, orient="row")


def made_up(
    repository: Path,
    folder: Path,
    cells: tuple[str, ...] = ("long", "other"),
    predictions: dict | None = None,
) -> Critical:
    plan = read_plan(write_plan(folder))
    runs = [run for run in runs_of(plan) if run.benchmark in cells]
    outcomes = [outcomes_of(run.method).with_columns(id=pl.lit(run.name)) for run in runs]
    facts = [facts_of(run.method, run.seed).select(pl.lit(run.name).alias("id"), pl.all()) for run in runs]
    records = tuple(replace(recorded(run), probes=PROBES) for run in runs)
    record = Record(records, pl.concat(outcomes), pl.concat(facts)) if runs else Record()
    found = {
        cell: {method: Prediction(preference=value, sign=sign) for method, (value, sign) in methods.items()}
        for cell, methods in (predictions or {}).items()
    }
    return Critical(assembled(plan, record, repository), found, choices={})


@pytest.mark.skipif(
    not (Path(__file__).parents[2] / PLAN / "plan.yaml").is_file(), reason="the plan is not written yet"
)
def test_page_and_figures_are_what_the_record_gives(repository: Path) -> None:
    for path, text in files(read_critical(repository), repository).items():
        assert (repository / path).read_text() == text, f"{path}: run python -m studies.critical"


def test_levels_have_the_share_of_routines_and_the_success_of_every_class(
    repository: Path, tmp_path: Path
) -> None:
    found = made_up(repository, tmp_path, predictions={"long": {"segcost": (0.25, "+")}})
    rows = {line.split(" | ")[0]: line for line in levels(found, "long")}
    assert rows["| `grpo`"].startswith("| `grpo` | – | 2 | 25.0")
    assert rows["| `segcost`"].startswith("| `segcost` | + (+0.25) | 2 | 87.5")
    known, unseen, piece = (cell.split(" ")[0] for cell in rows["| `segcost`"].split(" | ")[4:7])
    assert (known, unseen, piece) == ("100.0", "75.0", "75.0")
    assert rows["| `segcost`"].endswith(" | – | – |")  # there are no other unseen tasks


def test_claims_have_their_prediction_their_own_outcome_and_a_verdict(
    repository: Path, tmp_path: Path
) -> None:
    predictions = {"long": {"segcost": (0.25, "+")}, "other": {"segcost": (0.0, "0")}}
    lines = list(parts(made_up(repository, tmp_path, predictions=predictions))["claims"]())
    assert "*Routines* (2 claims):" in lines and "*Unseen* (1 claim):" in lines
    (routines,) = [
        line for line in lines if line.startswith("| `long` | `segcost` > `grpo` | routines, known")
    ]
    assert " | + (higher) | +62.5" in routines  # 2 and 3 of 4 wins
    (unseen,) = [line for line in lines if line.startswith("| `long` | `segcost` > `grpo` | success, unseen")]
    assert " | +50.0" in unseen
    (same,) = [line for line in lines if line.startswith("| `other` | `segcost` = `grpo`")]
    assert " | 0 (same) | +62.5" in same


def test_without_runs_the_page_says_what_is_missing(repository: Path, tmp_path: Path) -> None:
    found = made_up(repository, tmp_path, cells=())
    known = parts(found)
    assert "| Long shortcuts | 2 | 10 to 11 | 0 of 4 |" in list(known["state"]())
    assert list(known["state"]())[-1] == "There are no predictions yet."
    assert list(summary(found))[-1] == "3 claims: 3 × runs are missing."
    assert list(compression(found)) == ["No run with probes is recorded yet."]
    assert all("runs are missing" in line for line in known["claims"]() if line.startswith("| `"))
    for figure in draw(found).values():
        assert figure.startswith("<svg") and ("no runs yet" in figure or "no predictions" in figure)


def test_a_partial_record_gives_the_verdicts_that_it_can(repository: Path, tmp_path: Path) -> None:
    lines = list(summary(made_up(repository, tmp_path, cells=("long",))))
    routines, unseen = [line for line in lines if line.startswith("| `segcost` against `grpo` |")]
    assert routines.startswith("| `segcost` against `grpo` | routines, known | > ")
    assert routines.endswith(" | = runs are missing |")  # what of `other` is known: what is claimed
    assert unseen.endswith(" | – |")  # nothing is claimed there
    assert "3 claims: " in lines[-1] and "1 × runs are missing" in lines[-1]


def test_the_figure_of_predictions_has_a_point_per_predicted_method_with_runs(
    repository: Path, tmp_path: Path
) -> None:
    predictions = {
        "long": {"grpo": (0.0, "0"), "segcost": (0.25, "+")},
        "other": {"round_length": (-0.5, "-")},
    }
    legend, dots = 4, 1 + len(SEEDS)
    points = draw(made_up(repository, tmp_path, predictions=predictions))["critical_predictions"]
    assert points.count("<circle") == legend + 2 * dots
    fewer = draw(made_up(repository, tmp_path, cells=("long",), predictions=predictions))
    assert fewer["critical_predictions"].count("<circle") == legend + dots


def test_the_answer_has_interquartile_means_and_pools_the_cells_of_a_sign(
    repository: Path, tmp_path: Path
) -> None:
    found = with_verdicts(repository, tmp_path, YES, YES)
    found.predictions.update(
        {cell: {"segcost": Prediction(preference=0.25, sign="+")} for cell in ("long", "other")}
    )
    *_, long, _, both = answer(found)
    assert " | +20.0 (+13.0 to +27.0) | +20.0 (+20.0 to +20.0) |" in long
    assert both == "| 2 cells | + | – | +0.0 (+0.0 to +0.0) | – | +0.0 (+0.0 to +0.0) |"  # a seed in each


def test_the_gap_is_that_of_known_and_unseen_tasks_and_compression_that_of_the_last_probe(
    repository: Path, tmp_path: Path
) -> None:
    rows = made_up(repository, tmp_path, cells=("long",)).gaps.sort("seed", "gap").to_dicts()
    assert [(row["seed"], row["gap"]) for row in rows] == [(10, 0.25), (10, 0.75), (11, 0.25), (11, 0.75)]
    assert {row["description_length"] for row in rows} == {2.0}


def test_the_verdict_on_compression_waits_for_the_runs_of_its_scope(repository: Path, tmp_path: Path) -> None:
    lines = list(compression(made_up(repository, tmp_path, cells=("long",))))
    assert all("cannot be told" in line for line in lines if line.startswith("| `long`"))
    both = list(compression(made_up(repository, tmp_path)))
    assert not any("runs are missing" in line for line in both)


def test_what_plan_and_predictions_disagree_on_is_named(repository: Path, tmp_path: Path) -> None:
    wrong = {"long": {"segcost": (-0.1, "-"), "random": (0.0, "0")}}
    found = made_up(repository, tmp_path, predictions=wrong)
    lines = disagreements(found.results.plan, found.predictions)
    assert lines == ["long: segcost against grpo: the plan expects `higher`, the prediction's sign is `-`"]
    assert not_run(found.results.plan, found.predictions) == {"random": ["long"]}


def test_predictions_are_read_and_a_wrong_sign_is_refused(tmp_path: Path) -> None:
    assert read_predictions(tmp_path) == {}
    (tmp_path / FILE).write_text('{"long": {"segcost": {"preference": 0.5, "sign": "+"}}}')
    assert read_predictions(tmp_path)["long"]["segcost"].preference == 0.5
    (tmp_path / FILE).write_text('{"long": {"segcost": {"preference": 0.5, "sign": "up"}}}')
    with pytest.raises(StorageError, match=r"predictions\.json: long\.segcost\.sign"):
        read_predictions(tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "corrected", "complete", "verdict"),
    [
        (0.2, 0.6, 0.01, True, "yes"),
        (-0.6, -0.2, 0.01, True, "no, reversed"),
        (-0.2, 0.2, 1.0, True, "no, too small to matter"),
        (-0.4, 0.2, 1.0, True, "cannot be told"),
        (0.2, 0.6, 0.01, False, "runs are missing"),
    ],
)
def test_the_verdict_on_compression(
    low: float, high: float, corrected: float, complete: bool, verdict: str
) -> None:
    middle = (low + high) / 2
    one = Agreement(
        scope="x", measure="certificate", runs=9, seeds=3, correlation=middle, low=low, high=high, p=0.1
    )
    assert verdict_of_agreement(one, corrected, complete) == verdict


def test_the_page_has_every_part_that_is_made(repository: Path, tmp_path: Path) -> None:
    text = "".join((repository / page).read_text(encoding="utf-8") for page in (PAGE, TABLES))
    made = parts(made_up(repository, tmp_path)).keys() - {"critical_in_short"}
    assert all(f"<!-- made: {name} -->" in text for name in made)


def finding(cell: str, expect: str, verdict: str, outcome: str | None, difference: float) -> ClaimEvidence:
    claim = Claim(
        question="q", family="f", benchmark=cell, first="grpo", second="segcost", expect=expect,
        outcome=outcome,
    )  # fmt: skip
    return ClaimEvidence(
        claim=claim, planned=1, margin=0.05, difference=difference, per_seed=(difference,),
        low=difference - 0.07, high=difference + 0.07, verdict=verdict,
    )  # fmt: skip


def with_verdicts(repository: Path, folder: Path, of_long: str, of_other: str) -> Critical:
    """A record whose claims about two cells with and one cell against SegCost have these verdicts."""
    found = made_up(repository, folder)
    found.__dict__["findings"] = [
        finding(cell, expect, verdict, outcome, sign * 0.2)
        for cell, expect, verdict, sign in (
            ("long", "higher", of_long, 1), ("wide", "higher", YES, 1), ("other", "lower", of_other, -1),
        )
        for outcome in (ROUTINES, None)
    ]  # fmt: skip
    return found


def test_the_readmes_sentences_follow_the_verdicts(repository: Path, tmp_path: Path) -> None:
    def said(of_long: str, of_other: str) -> str:
        return " ".join(critical_in_short(with_verdicts(repository, tmp_path, of_long, of_other)))

    assert "SegCost chooses them in both cells; it wins 20 to 20 points more" in said(YES, YES)
    assert "than GRPO (both shown)" in said(YES, YES)
    open_one = said(OPEN, REVERSED)
    assert "chooses them in 1 of 2 cells" in open_one
    assert "(1 of 2 shown; cannot be told in `long` (+20.0, +13.0 to +27.0))" in open_one
    assert "chooses the shortcut in 0 of 1 cells" in open_one and "no, reversed in `other`" in open_one
    assert said(MISSING, YES) == "Runs of the critical experiment are missing."


def test_every_claim_of_the_plan_that_does_not_hold_is_told_where_it_is_summed_up(repository: Path) -> None:
    found = read_critical(repository)
    known = parts(found)
    text = " ".join(" ".join([*known["found"](), *known["changes"]()]).split())
    told = ("segcost", "constant", "per_class", "bits", "each_task_once")
    for one in found.findings:
        if one.claim.second in told and one.verdict != YES and not one.claim.of_class:
            assert f"{one.verdict} in `{one.claim.benchmark}` (" in text, one.claim.name
    assert "7 of 8 shown; cannot be told in `longer` (-3.5, -10.5 to +3.5)" in text, "a constant penalty"
