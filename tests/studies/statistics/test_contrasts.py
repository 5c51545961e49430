"""Verdicts on the study's claims, in cases that follow from the plan's words."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from scipy.stats import ttest_1samp

from skillpress.evaluation.study.plan import BY_CLASS, Claim
from studies.statistics.contrasts import (
    GATED,
    MISSING,
    OPEN,
    OTHER,
    REVERSED,
    TOO_SMALL,
    YES,
    ClaimEvidence,
    judged,
    measured,
)


def claim(expect: str = "higher", benchmark: str = "b", of_class: str = "") -> Claim:
    return Claim(
        question="q",
        family="f" + (BY_CLASS if of_class else ""),
        benchmark=benchmark,
        first="one",
        second="two",
        expect=expect,  # type: ignore[arg-type]
        of_class=of_class,
    )


def finding(
    difference: float, half: float, p: float, expect: str = "higher", seeds: int = 5, **of: str
) -> ClaimEvidence:
    return ClaimEvidence(
        claim=claim(expect, **of),
        planned=5,
        margin=0.01,
        difference=difference,
        per_seed=(difference,) * seeds,
        low=difference - half,
        high=difference + half,
        p=p,
    )


def test_where_seeds_have_their_own_tasks_it_is_the_t_test_over_seeds() -> None:
    pairs, differences = [], [0.25, 0.5, 0.25, 0.75]
    for seed, difference in enumerate(differences):
        tasks = [f"{seed}-{task}" for task in range(4)]
        won = [1.0] * int(4 * difference) + [0.0] * (4 - int(4 * difference))
        one = pl.DataFrame({"task_id": tasks, "score": [0.0] * 4})
        pairs.append((one, pl.DataFrame({"task_id": tasks[::-1], "score": won})))
    found = measured(claim(), pairs, planned=4, margin=0.01)
    assert found.per_seed == pytest.approx(differences)
    assert found.difference == pytest.approx(0.4375)
    assert found.p == pytest.approx(ttest_1samp(differences, 0).pvalue)
    assert found.complete and not measured(claim(), pairs[:3], planned=4, margin=0.01).complete


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (finding(0.03, 0.02, 0.01), YES),
        (finding(-0.03, 0.02, 0.01), REVERSED),
        (finding(-0.03, 0.02, 0.01, "lower"), YES),
        (finding(-0.03, 0.02, 0.01, "differs"), YES),
        (finding(0.002, 0.006, 0.6), TOO_SMALL),  # at most +0.8 points
        (finding(-0.005, 0.01, 0.3), TOO_SMALL),  # expected higher, at most +0.5
        (finding(-0.005, 0.01, 0.3, "lower"), OPEN),  # may be as low as -1.5
        (finding(-0.005, 0.01, 0.3, "differs"), OPEN),
        (finding(0.03, 0.05, 0.2), OPEN),
        (finding(0.03, 0.02, 0.01, seeds=4), MISSING),
    ],
)
def test_a_verdict_is_what_the_plan_says_it_is(found: ClaimEvidence, verdict: str) -> None:
    assert judged([found])[0].verdict == verdict


def test_claims_of_a_family_are_corrected_together_and_missing_ones_keep_their_place() -> None:
    done = judged([finding(0.03, 0.02, 0.02), finding(0.03, 0.02, 0.001, seeds=4, benchmark="c")])
    assert done[0].corrected == pytest.approx(0.04)  # 2 x 0.02, though the other is not there yet
    assert done[1].corrected is None
    assert done[1].verdict == MISSING


def test_a_class_of_tasks_has_no_verdict_where_the_claim_on_all_tasks_is_open() -> None:
    of_class = finding(0.05, 0.01, 0.001, of_class="hard")
    assert judged([finding(0.03, 0.05, 0.2), of_class])[1].verdict == GATED
    assert judged([finding(0.03, 0.02, 0.01), of_class])[1].verdict == YES


def test_without_a_p_there_is_none_to_correct() -> None:
    alike = replace(finding(0.0, 0.0, 1.0, "same"), low=None, high=None, p=None)
    (found,) = judged([alike])
    assert (found.corrected, found.verdict) == (None, YES)


def test_without_a_seed_there_is_nothing() -> None:
    (found,) = judged([measured(claim(), [], planned=5, margin=0.01)])
    assert (found.difference, found.verdict) == (None, MISSING)


def test_no_difference_is_claimed_by_two_one_sided_tests() -> None:
    """Differences of 0.2, 0 and 0.1 points: both tests of a margin of 1 point are one-sided t tests."""
    tasks, differences, margin = [str(task) for task in range(1000)], [0.002, 0.0, 0.001], 0.01
    pairs = []
    for seed, difference in enumerate(differences):
        names = [f"{seed}-{task}" for task in tasks]
        won = [1.0] * round(1000 * difference)
        one = pl.DataFrame({"task_id": names, "score": [0.0] * 1000})
        pairs.append((one, pl.DataFrame({"task_id": names, "score": won + [0.0] * (1000 - len(won))})))
    found = measured(claim("same"), pairs, planned=3, margin=margin)
    below = ttest_1samp(differences, margin, alternative="less").pvalue
    above = ttest_1samp(differences, -margin, alternative="greater").pvalue
    assert found.p is not None and found.p >= max(below, above)  # degrees of freedom are at most those of t
    assert found.p == pytest.approx(max(below, above), rel=0.2)
    assert judged([found])[0].verdict == YES


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (finding(0.002, 0.006, 0.01, "same"), YES),
        (finding(0.002, 0.02, 0.3, "same"), OPEN),  # up to 2.2 points
        (finding(0.02, 0.006, 0.99, "same"), OTHER),  # at least 1.4 points
        (finding(-0.02, 0.006, 0.99, "same"), OTHER),
        (finding(0.012, 0.006, 0.8, "same"), OPEN),  # more than 0, perhaps less than 1 point
        (finding(0.002, 0.006, 0.01, "same", seeds=4), MISSING),
    ],
)
def test_the_verdict_on_a_claim_of_no_difference(found: ClaimEvidence, verdict: str) -> None:
    assert judged([found])[0].verdict == verdict


def test_where_nothing_varies_no_difference_is_told_by_the_difference_itself() -> None:
    def alike(score: float) -> ClaimEvidence:
        one, other = (pl.DataFrame({"task_id": ["a", "b"], "score": [x, x]}) for x in (0.5, score))
        return judged([measured(claim("same"), [(one, other)] * 2, planned=2, margin=0.01)])[0]

    assert (alike(0.5).verdict, alike(1.0).verdict) == (YES, OTHER)


def test_a_seed_without_a_task_that_both_scored_is_left_out() -> None:
    one = pl.DataFrame({"task_id": ["a", "b"], "score": [0.0, 1.0]})
    other = pl.DataFrame({"task_id": ["c"], "score": [1.0]})
    found = measured(claim(), [(one, one), (one, other)], planned=2, margin=0.01)
    assert found.per_seed == (0.0,)
