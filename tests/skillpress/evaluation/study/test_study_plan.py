"""The plan: what it refuses, and which claims it makes; and the plan of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.evaluation.study.plan import PlanError, divided, measure_of, read_plan, within_budget
from tests.support.pipeline.small_study import QUESTION, SHARED, write_plan

CONTRAST = QUESTION["families"]["order"][0]


def test_a_contrast_is_claimed_on_every_benchmark_that_runs_both_of_its_methods(tmp_path: Path) -> None:
    plan = read_plan(write_plan(tmp_path, runs={"small": ["grpo", "segcost"], "large": ["grpo"]}))
    assert [claim.name for claim in plan.claims("q1_which")] == ["small: segcost against grpo"]
    assert plan.chosen() == {"small": ["grpo", "segcost"], "large": ["grpo"]}


def test_claims_about_classes_of_tasks_are_a_family_of_their_own(tmp_path: Path) -> None:
    contrast = {**CONTRAST, "classes": {"small": ["hard"]}}
    plan = read_plan(write_plan(tmp_path, families={"order": [contrast]}))
    claims = [(claim.family, claim.benchmark, claim.of_class) for claim in plan.claims("q1_which")]
    assert claims == [("order", "small", ""), ("order", "large", ""), ("order, by class", "small", "hard")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runs": {"tiny": ["grpo"]}}, "runs.tiny: no such benchmark"),
        ({"runs": {"small": ["ppo"]}}, "runs.small: no method 'ppo'"),
        ({"runs": {"small": ["grpo"]}}, "no benchmark of the question runs both"),
        ({"families": {"order": [{**CONTRAST, "benchmarks": ["nowhere"]}]}}, "is not run on nowhere"),
        ({"families": {"order": [{**CONTRAST, "expect": "better"}]}}, "expect"),
        ({"counts_as_yes": 1}, "counts_as_yes"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused_with_file_and_entry(
    tmp_path: Path, changes: dict, said: str
) -> None:
    with pytest.raises(PlanError, match=said) as raised:
        read_plan(write_plan(tmp_path, **changes))
    assert "q1_which.yaml" in str(raised.value)


def test_unknown_outcomes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHARED["benchmarks"]["small"], "outcome", "return")
    with pytest.raises(PlanError, match=r"plan\.yaml: small\.outcome: .*within_<steps>"):
        read_plan(write_plan(tmp_path))


def test_the_rule_for_diverged_runs_is_part_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_plan(write_plan(tmp_path)).diverged is None
    monkeypatch.setitem(SHARED, "diverged", {"outcome": "pass_at_1", "below_median": 0.15})
    rule = read_plan(write_plan(tmp_path)).diverged
    assert rule is not None and (rule.outcome, rule.below_median) == ("pass_at_1", 0.15)
    monkeypatch.setitem(SHARED, "diverged", {"outcome": "pass_at_1", "below_median": 15})
    with pytest.raises(PlanError, match=r"plan\.yaml: diverged\.below_median"):
        read_plan(write_plan(tmp_path))


def test_questions_are_chosen_by_the_beginnings_of_their_names(tmp_path: Path) -> None:
    plan = read_plan(write_plan(tmp_path))
    assert plan.chosen(["q1"], ["large"]) == {"large": ["grpo", "segcost"]}
    with pytest.raises(PlanError, match="no question 'q2'"):
        plan.chosen(["q2"])
    with pytest.raises(PlanError, match="no benchmark 'nowhere'"):
        plan.chosen([], ["nowhere"])


def test_the_steps_of_an_outcome() -> None:
    assert within_budget("within_5") == 5
    assert within_budget("pass_at_1") is None


def test_the_class_and_the_fact_of_an_outcome() -> None:
    assert divided("pass_at_1 in unseen/order") == ("pass_at_1", "unseen/order")
    assert divided("within_5") == ("within_5", "")
    assert measure_of("measure_by_routine in known") == "by_routine"
    assert measure_of("pass_at_1") is None


@pytest.mark.parametrize("outcome", ["measure_", "pass_at_1 in ", "within_0 in known"])
def test_outcomes_without_a_fact_a_class_or_steps_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    monkeypatch.setitem(SHARED["benchmarks"]["small"], "secondary", [outcome])
    with pytest.raises(PlanError, match=r"small\.secondary\.0: .*pass_at_1 in unseen"):
        read_plan(write_plan(tmp_path))


def test_a_claim_may_have_its_own_outcome_and_margin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contrast = {**CONTRAST, "outcome": "measure_by_routine", "margin": 0.2, "benchmarks": ["small"]}
    with pytest.raises(PlanError, match=r"'measure_by_routine' is among no outcomes of small.*add it to"):
        read_plan(write_plan(tmp_path, families={"order": [contrast]}))
    monkeypatch.setitem(SHARED["benchmarks"]["small"], "secondary", ["measure_by_routine in known"])
    plan = read_plan(write_plan(tmp_path, families={"order": [contrast]}))
    (claim,) = plan.claims("q1_which")
    assert (claim.outcome, claim.margin) == ("measure_by_routine", 0.2)
    assert plan.benchmarks["small"].measures == ["by_routine"]


def test_the_plan_of_the_study_is_whole_and_spares_the_seeds_of_the_pilots(repository: Path) -> None:
    plan = read_plan(repository / "params" / "study")
    assert [name.split("_")[0] for name in plan.questions] == [f"q{number}" for number in range(1, 8)]
    for benchmark in plan.benchmarks.values():
        assert not {0, 1, 2} & set(benchmark.seeds)
    assert len(plan.benchmarks["countdown"].seeds) >= 8
    for method in plan.methods.values():
        for overlay in method.overlays:
            assert (repository / "params" / f"{overlay}.yaml").is_file(), overlay
    used = {method for methods in plan.chosen().values() for method in methods}
    assert used == set(plan.methods)
