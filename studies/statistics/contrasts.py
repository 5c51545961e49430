"""The plan's claims, tested: an interval over seeds and tasks, Holm's correction in families, a verdict.

The tests are those of ``evaluation/trainings.py``. A claim ``same`` says that the difference is smaller than
the margin. Its p is that of the two one-sided tests (Schuirmann 1987): the larger of the chances of so small
a difference if it were the margin, above or below 0.

A claim gets a verdict when the record holds both methods for every planned seed. Until then it keeps its
place in the family (its p counts as 1), so that missing runs never make a correction laxer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from skillpress.core.distributions import student_cdf, student_quantile
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.sign_flips import sign_flips_of_seeds
from skillpress.evaluation.statistics.trainings import OverTrainings, over_trainings
from skillpress.evaluation.study.holm import holm
from skillpress.evaluation.study.plan import BY_CLASS, Claim
from studies.statistics.interquartile import interquartile

LEVEL = 0.05
YES, REVERSED, TOO_SMALL, OPEN = "yes", "no, reversed", "no, too small to matter", "cannot be told"
OTHER = "no, it differs"
"""The verdict on a claim of no difference if the difference is shown to be larger than the margin."""
GATED = "open, as on all tasks"
"""The verdict on a class of tasks if the claim on all tasks is open."""
MISSING = "runs are missing"

Pair = tuple[pl.DataFrame, pl.DataFrame]
"""``task_id`` and ``score`` of the first method and of the second, trained with one seed."""


@dataclass(frozen=True)
class ClaimEvidence:
    """A claim and the record's evidence for it; shares in [-1, 1]."""

    claim: Claim
    planned: int
    """The seeds that the plan asks for."""
    margin: float
    difference: float | None = None
    """Second minus first, mean over seeds; None if no seed has both."""
    per_seed: tuple[float, ...] = ()
    tasks: int = 0
    """Number of different tasks."""
    low: float | None = None
    """Lower end of the 95% interval over seeds and tasks; None below two seeds, or if nothing varies."""
    high: float | None = None
    p: float | None = None
    """Uncorrected: two-sided for a difference, of two one-sided tests for none."""
    corrected: float | None = None
    """p corrected by Holm's method within the family; None without p, or while a run is missing."""
    verdict: str = MISSING

    @property
    def complete(self) -> bool:
        """Whether the record has every planned seed."""
        return len(self.per_seed) >= self.planned

    @property
    def p_of_signs(self) -> float | None:
        """The exact p of the seeds' signs, uncorrected; None for a claim of no difference, and while a run is
        missing."""
        tested = self.complete and self.per_seed and self.claim.expect != "same"
        return sign_flips_of_seeds(self.per_seed) if tested else None

    @property
    def middle(self) -> tuple[float, float, float] | None:
        """The interquartile mean over seeds and the ends of its interval; None without a seed."""
        return interquartile([self.per_seed]) if self.per_seed else None


def measured(claim: Claim, pairs: Sequence[Pair], planned: int, margin: float) -> ClaimEvidence:
    """The difference and its interval, before correction and verdict."""
    empty = ClaimEvidence(claim=claim, planned=planned, margin=margin)
    if not pairs:
        return empty
    joined = [one.join(other, on="task_id", suffix="_second") for one, other in pairs]
    joined = [pair for pair in joined if pair.height]  # a policy that wins nothing says not how it wins
    if not joined:
        return empty
    difference = (pl.col("score_second") - pl.col("score")).round(12)
    found = Scores.of([pair.select("task_id", score=difference) for pair in joined])
    interval = over_trainings(found)
    known = replace(
        empty,
        difference=found.mean(),
        per_seed=tuple(found.seed_means().tolist()),
        tasks=found.tasks,
    )
    if interval is None:
        return known
    p = _p_of_equivalence(found.mean(), interval, margin) if claim.expect == "same" else interval.p
    return replace(known, low=interval.low, high=interval.high, p=p)


def _p_of_equivalence(difference: float, interval: OverTrainings, margin: float) -> float:
    """p of the two one-sided tests; the interval's half width gives the standard error."""
    error = (interval.high - interval.low) / 2 / student_quantile(interval.degrees, 0.975)
    return student_cdf(interval.degrees, (abs(difference) - margin) / error)


def judged(findings: Sequence[ClaimEvidence]) -> list[ClaimEvidence]:
    """The findings of a question with corrected p-values and verdicts, in their order."""
    families: dict[str, list[int]] = {}
    for place, finding in enumerate(findings):
        families.setdefault(finding.claim.family, []).append(place)
    done = list(findings)
    for places in families.values():
        corrected = holm([_known_p(findings[place]) for place in places])
        for place, value in zip(places, corrected, strict=True):
            if findings[place].complete and findings[place].p is not None:
                done[place] = replace(findings[place], corrected=value)
    of_all = {_key(finding.claim): _verdict(finding) for finding in done if not finding.claim.of_class}
    return [replace(finding, verdict=_gated(finding, of_all)) for finding in done]


def _known_p(finding: ClaimEvidence) -> float:
    return 1.0 if finding.p is None or not finding.complete else finding.p


def _verdict(finding: ClaimEvidence) -> str:
    if not finding.complete or finding.difference is None:
        return MISSING
    if finding.claim.expect == "same":
        return _verdict_of_equivalence(finding)
    sign = {"higher": 1, "lower": -1, "differs": 0}[finding.claim.expect]
    if finding.corrected is not None and finding.corrected < LEVEL:
        return REVERSED if sign * finding.difference < 0 else YES
    if finding.low is None or finding.high is None:
        return OPEN
    ends = {1: (finding.high,), -1: (-finding.low,), 0: (finding.high, -finding.low)}[sign]
    return TOO_SMALL if max(ends) < finding.margin else OPEN


def _verdict_of_equivalence(finding: ClaimEvidence) -> str:
    if finding.p is None and finding.difference is not None:  # all seeds and tasks alike
        return YES if abs(finding.difference) < finding.margin else OTHER
    if finding.corrected is not None and finding.corrected < LEVEL:
        return YES
    assert finding.low is not None and finding.high is not None
    return OTHER if max(finding.low, -finding.high) > finding.margin else OPEN


def _gated(finding: ClaimEvidence, of_all: Mapping[tuple[str, ...], str]) -> str:
    verdict = _verdict(finding)
    if finding.claim.of_class and verdict != MISSING and of_all.get(_key(finding.claim)) == OPEN:
        return GATED
    return verdict


def _key(claim: Claim) -> tuple[str, ...]:
    outcome = claim.outcome or ""
    return claim.family.removesuffix(BY_CLASS), claim.benchmark, claim.first, claim.second, outcome
