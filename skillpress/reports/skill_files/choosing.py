"""Which routines of a log become skills, and why the others do not.

The dictionary is fitted to all runs, whether they succeeded or not: a choice that looked at success would
make the later comparison of successes too favourable. Each pair of a task and a sequence of skills counts
once, so a task that is repeated cannot make a routine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log, prod

import numpy as np

from skillpress.core.distributions import normal_quantile, student_quantile
from skillpress.logs.log import Log
from skillpress.reports.skill_files.cores import with_cores, with_phrases
from skillpress.reports.skill_files.words import longest_common
from skillpress.reports.skills_page.certificate import PageCertificate, certify
from skillpress.reports.skills_page.comparison import clusters_of, design_effect, newcombe
from skillpress.reports.skills_page.routines import Usage, bits_saved, holdings
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.fit import fit

ERROR = 0.05
FEWEST_TASKS = 2
LIFT = 1.5
"""A routine occurs at least this many times as often as if the steps of each run were in random order."""


@dataclass(frozen=True)
class Choosing:
    """Settings of the choice."""

    min_runs: int = 3
    most: int = 20
    """The largest number of skills that are written."""
    longest: int = 6
    """A routine has at most this many steps."""
    search: str = "refined"
    seed: int = 0


@dataclass(frozen=True)
class SuccessContrast:
    """Success of the runs with a routine and of those without it, if their outcome is known."""

    won: tuple[int, int]
    """Successes with it, and without it."""
    runs: tuple[int, int]
    low: float
    """Lower end of the 95% interval of the difference of both shares."""
    high: float


@dataclass(frozen=True)
class Found:
    """A routine, with its figures from the log."""

    phrase: Skills
    uses: int
    holders: tuple[int, ...]
    """Positions in the log of the runs that contain it."""
    tasks: int
    """The distinct tasks of these runs."""
    bits_saved: float
    by_chance: float
    """Expected uses if the steps of each run were in random order."""
    observed: int
    """Uses in the distinct pairs of a task and a sequence, to compare with ``by_chance``."""
    success: SuccessContrast | None
    variants: tuple[Found, ...] = ()
    """Routines that share most of their steps with it, so they did not become separate skills."""

    @property
    def steps_saved(self) -> int:
        """Entries of a cut that it saves without other routines; ``bits_saved`` counts what it saves in
        addition to them.
        """
        return self.observed * (len(self.phrase) - 1)


@dataclass(frozen=True)
class RejectedRoutine:
    """A routine that did not become a skill."""

    found: Found
    why: str


@dataclass(frozen=True)
class ChosenRoutines:
    """The routines of a log that become skills, and the rest."""

    chosen: tuple[Found, ...]
    passed_over: tuple[RejectedRoutine, ...]
    pairs: int
    """Distinct pairs of a task and a sequence."""
    certificate: PageCertificate | None


def choose(whole: Log, tasks: Sequence[str], settings: Choosing) -> ChosenRoutines:
    """Choose routines.

    Args:
        tasks: the task of each run; empty for a run that stands alone.
    """
    sequences = whole.skills
    keys = [
        (task or f"run {place}", skills)
        for place, (task, skills) in enumerate(zip(tasks, sequences, strict=True))
    ]
    pairs = list(dict.fromkeys(keys))
    corpus = [skills for _, skills in pairs]

    def fitted(of: Sequence[Skills], search: str) -> SkillDictionary:
        return fit(of, whole.alphabet, settings.longest, search or settings.search, settings.seed)

    if not any(corpus):
        return ChosenRoutines((), (), len(pairs), None)
    dictionary = with_cores(fitted(corpus, ""), corpus)
    every = _found(whole, tasks, dictionary, corpus)
    kept, passed = _grouped(every, settings)
    if len(pairs) < len(whole):
        everywhere = with_cores(fitted(sequences, ""), sequences)
        passed += _repeated(whole, tasks, everywhere.learned, dictionary, corpus)
    certificate = certify(corpus, [task for task, _ in pairs], fitted, None, settings.seed)
    return ChosenRoutines(tuple(kept), tuple(passed), len(pairs), certificate)


def _found(
    whole: Log, tasks: Sequence[str], dictionary: SkillDictionary, corpus: Sequence[Skills]
) -> list[Found]:
    """All learned phrases, most bits saved first."""
    held, in_corpus = holdings(dictionary, whole.skills), holdings(dictionary, corpus)
    saved = bits_saved(dictionary, corpus)
    counts = [(len(skills), Counter(skills), times) for skills, times in Counter(corpus).items()]
    order = sorted(range(len(saved)), key=lambda n: (-saved[n], dictionary.learned[n]))
    found = []
    for number in order:
        holders = np.flatnonzero(held.having(number)).tolist()
        found.append(
            Found(
                held.phrases[number],
                uses=int(held.total[number]),
                holders=tuple(holders),
                tasks=len({tasks[place] or place for place in holders}),
                bits_saved=saved[number],
                by_chance=_by_chance(held.phrases[number], counts),
                observed=int(in_corpus.total[number]),
                success=_success(whole, tasks, held, number),
            )
        )
    return found


def _repeated(
    whole: Log,
    tasks: Sequence[str],
    repeated: Sequence[Skills],
    dictionary: SkillDictionary,
    corpus: Sequence[Skills],
) -> Iterator[RejectedRoutine]:
    """Routines that are learned only where each run counts, and resemble no learned one."""
    more = {phrase for phrase in repeated if not any(overlapping(phrase, one) for one in dictionary.learned)}
    extended = with_phrases(dictionary, [*dictionary.learned, *more], corpus)
    why = f"saves bits only by repeats: {len(whole)} runs are {len(corpus)} distinct pairs of task and steps"
    for found in _found(whole, tasks, extended, corpus):
        if found.phrase in more:
            yield RejectedRoutine(found, why)


def _by_chance(phrase: Skills, counts: Sequence[tuple[int, Counter[str], int]]) -> float:
    """Expected occurrences of a phrase if every sequence were in random order."""
    wanted, length, total = Counter(phrase), len(phrase), 0.0
    for size, held, times in counts:
        if size >= length and all(held[skill] >= count for skill, count in wanted.items()):
            ways = prod(held[skill] - used for skill, count in wanted.items() for used in range(count))
            total += times * (size - length + 1) * ways / prod(size - used for used in range(length))
    return total


def _success(whole: Log, tasks: Sequence[str], held: Usage, number: int) -> SuccessContrast | None:
    """None if no outcome of the runs with it, or of those without it, is known."""
    outcomes = [trace.success for trace in whole.traces]
    known, won = np.array([it is not None for it in outcomes]), np.array([it is True for it in outcomes])
    having = held.having(number)
    first, second = having & known, ~having & known
    if not first.any() or not second.any():
        return None
    clusters = clusters_of(tasks, known)
    distinct, runs = int(clusters.max()) + 1, (int(first.sum()), int(second.sum()))
    clustered = 1 < distinct < known.sum()
    effect = design_effect(won, first, second, clusters) if clustered else 1.0
    quantile = student_quantile(distinct - 1, 1 - ERROR / 2) if clustered else normal_quantile(1 - ERROR / 2)
    shares = float(won[first].mean()), float(won[second].mean())
    low, high = newcombe(shares, (runs[0] / effect, runs[1] / effect), quantile)
    return SuccessContrast((int(won[first].sum()), int(won[second].sum())), runs, low, high)


def _grouped(every: Sequence[Found], settings: Choosing) -> tuple[list[Found], list[RejectedRoutine]]:
    """The routines that become skills, and the rest with reasons."""
    passed: list[RejectedRoutine] = []
    kept: list[Found] = []
    variants: dict[Skills, tuple[Found, ...]] = {}
    for found in sorted(every, key=lambda found: -found.steps_saved):
        why = next(_objections(found, settings, len(every)), "")
        alike = next((other for other in kept if overlapping(other.phrase, found.phrase)), None)
        if not why and alike is not None:
            why = f"shares most steps with {' → '.join(alike.phrase)}, which saves more"
            variants[alike.phrase] = (*variants.get(alike.phrase, ()), found)
        if not why and len(kept) >= settings.most:
            why = f"{settings.most} others save more (--max)"
        if why:
            passed.append(RejectedRoutine(found, why))
        else:
            kept.append(found)
    return [replace(found, variants=variants.get(found.phrase, ())) for found in kept], passed


def _objections(found: Found, settings: Choosing, compared: int) -> Iterator[str]:
    """Why a routine, considered alone, is not worth a skill."""
    if found.bits_saved <= 0:
        yield "does not pay for its own description"
    if len(found.holders) < settings.min_runs:
        yield f"in {len(found.holders)} runs, fewer than {settings.min_runs} (--min-runs)"
    if found.tasks < FEWEST_TASKS:
        yield "in one task only"
    success = found.success
    if success is not None and success.high < 0:
        yield f"goes with failure: {100 * success.low:+.0f} to {100 * success.high:+.0f} points of success"
    if found.observed < LIFT * found.by_chance or _chance(found) > ERROR / compared:
        yield f"hardly more often than in random order: {found.observed} uses, {found.by_chance:.1f} expected"


def _chance(found: Found) -> float:
    """A bound on the probability of this many uses in random order, if uses were independent (Chernoff)."""
    seen, expected = found.observed, found.by_chance
    if seen <= expected:
        return 1.0
    return exp(seen - expected - seen * log(seen / expected)) if expected else 0.0


def overlapping(one: Skills, other: Skills) -> bool:
    """Whether two phrases have more than half of the shorter one's skills in common, in order."""
    return 2 * len(longest_common(one, other)) > min(len(one), len(other))
