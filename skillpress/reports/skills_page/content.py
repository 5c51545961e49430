"""Turn a log into the content of its page: figures and records, without markup.

The dictionary is fitted to the successes, or to all traces if the log does not tell successes. The
comparisons use a second dictionary that is fitted to all of their traces (``comparison.py`` says why).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpress.core.errors import did_you_mean
from skillpress.evaluation.analysis.mdl_report import Overlap, Savings, overlap, savings
from skillpress.logs.log import Log, LoggedTrace
from skillpress.logs.trace import TracesError
from skillpress.reports.skills_page.answer import SuccessRates, answer
from skillpress.reports.skills_page.certificate import PageCertificate, certify
from skillpress.reports.skills_page.comparison import GroupComparison, compare
from skillpress.reports.skills_page.over_time import OverTime, over_time
from skillpress.reports.skills_page.routines import Usage, bits_saved, holdings, uses
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.fit import fit


@dataclass(frozen=True)
class Settings:
    """Settings for the description of a log."""

    search: str = "refined"
    max_phrase_length: int = 6
    """L."""
    longest_trace: int | None = None
    """T of the certificate; None means the longest trace of the log."""
    between: tuple[str, str] | None = None
    """The versions to compare; None means the two with most traces."""
    logs: tuple[str, str] = ("these traces", "the traces compared with")
    """The names of a log and of the log that it is compared with."""
    seed: int = 0


@dataclass(frozen=True)
class Routine:
    """One learned phrase of the dictionary."""

    phrase: Skills
    uses: int
    """Uses in the traces that the dictionary is fitted to."""
    traces: int
    """Number of these traces that use it."""
    bits_saved: float
    """Additional bits that these traces would need without it."""
    examples: tuple[int, ...]
    """Positions in the log of the first traces that use it."""


@dataclass(frozen=True)
class Versions:
    """Two versions of an agent. The later one comes first, so that differences are later minus earlier."""

    comparison: GroupComparison
    answer: SuccessRates | None
    """How often each succeeds; None if no outcome of one is known."""
    overlap: Overlap
    """Overlap of the two dictionaries, each fitted to its own version's traces."""
    learned: tuple[int, int]
    """Number of learned phrases per version."""
    others: dict[str, int]
    """Versions that are not compared, with their number of traces."""


@dataclass(frozen=True)
class Content:
    """Everything that the page says about a log."""

    log: Log
    settings: Settings
    dictionary: SkillDictionary
    fitted: NDArray[np.int64]
    """Positions of the traces that the dictionary is fitted to."""
    savings: Savings
    routines: tuple[Routine, ...]
    """Routines by bits saved, most first."""
    covered: tuple[tuple[str, float], ...]
    """(group of traces, share of its skills that learned phrases cover)."""
    certificate: PageCertificate | None
    success: GroupComparison | None
    """Successes against failures; None if the log lacks either."""
    contrast_examples: dict[Skills, tuple[int, ...]]
    """The first traces of each phrase in a comparison."""
    over_time: OverTime | None
    order: str
    """The values that order the traces over time."""
    versions: Versions | None

    @property
    def of_successes(self) -> bool:
        """Whether the dictionary is fitted to the successes alone."""
        return len(self.fitted) < len(self.log) or all(trace.success for trace in self.log.traces)


EXAMPLES = 3
"""The most traces that are named for each phrase."""


def describe(log: Log, settings: Settings, compared: Log | None = None) -> Content:
    """Compute the whole content of the page.

    Args:
        compared: the log of another version; only the comparison of versions uses it.

    Raises:
        TracesError: the versions to compare are not in the log, or no trace has a skill.
    """
    succeeded = np.array([trace.success is True for trace in log.traces])
    fitted = np.flatnonzero(succeeded) if succeeded.any() else np.arange(len(log))
    traces = [log.traces[place] for place in fitted]
    corpus = [trace.skills for trace in traces]
    if not any(corpus):
        raise TracesError("no step of a success has a skill; write rules that match some of these steps")
    dictionary = _fit(corpus, log.alphabet, settings)
    used = uses(dictionary, corpus)
    everywhere = uses(dictionary, log.skills) if len(fitted) < len(log) else used
    success, examples = _success(log, settings)
    versions = _versions(log, compared, settings)
    timed, order = _ordered(traces)
    return Content(
        log,
        settings,
        dictionary=dictionary,
        fitted=fitted,
        savings=savings(dictionary, corpus),
        routines=tuple(_routines(dictionary, corpus, used, fitted)),
        covered=tuple(_covered(log, everywhere)),
        certificate=certify(
            corpus,
            [trace.task for trace in traces],
            lambda sequences, search: _fit(sequences, log.alphabet, settings, search),
            settings.longest_trace,
            settings.seed,
        ),
        success=success,
        contrast_examples=examples,
        over_time=over_time(timed, lambda part: _fit(part, log.alphabet, settings), settings.seed),
        order=order,
        versions=versions,
    )


def _fit(
    sequences: Sequence[Skills], alphabet: Skills, settings: Settings, search: str = ""
) -> SkillDictionary:
    return fit(sequences, alphabet, settings.max_phrase_length, search or settings.search, settings.seed)


def _routines(
    dictionary: SkillDictionary, corpus: Sequence[Skills], used: Usage, fitted: NDArray[np.int64]
) -> Iterator[Routine]:
    saved = bits_saved(dictionary, corpus)
    for number in sorted(range(len(saved)), key=lambda n: (-saved[n], dictionary.learned[n])):
        users = fitted[np.flatnonzero(used.having(number))[:EXAMPLES]]
        yield Routine(
            used.phrases[number],
            uses=int(used.total[number]),
            traces=int(used.traces[number]),
            bits_saved=saved[number],
            examples=tuple(users.tolist()),
        )


def _covered(log: Log, used: Usage) -> Iterator[tuple[str, float]]:
    lengths = np.array([len(trace.skills) for trace in log.traces])
    within = (used.times @ np.array([len(phrase) for phrase in used.phrases], np.int64))[used.rows]
    outcomes = np.array([-1 if trace.success is None else int(trace.success) for trace in log.traces])
    groups = {
        "all traces": np.ones(len(log), np.bool_),
        "successes": outcomes == 1,
        "failures": outcomes == 0,
        "outcome unknown": outcomes == -1,
    }
    for name, group in groups.items():
        if (total := int(lengths[group].sum())) and (name == "all traces" or not group.all()):
            yield name, float(within[group].sum() / total)


def _success(log: Log, settings: Settings) -> tuple[GroupComparison | None, dict[Skills, tuple[int, ...]]]:
    known = [place for place, trace in enumerate(log.traces) if trace.success is not None]
    traces = [log.traces[place] for place in known]
    outcomes = np.array([trace.success for trace in traces], np.bool_)
    if not known or outcomes.all() or not outcomes.any():
        return None, {}
    sequences = [trace.skills for trace in traces]
    held = holdings(_fit(sequences, log.alphabet, settings), sequences)
    found = compare(held, outcomes, ~outcomes, [trace.task for trace in traces], ("successes", "failures"))
    positions = np.array(known)
    examples = {
        phrase: tuple(positions[np.flatnonzero(held.having(number))[:EXAMPLES]].tolist())
        for number, phrase in enumerate(held.phrases)
    }
    return found, examples


def _versions(log: Log, compared: Log | None, settings: Settings) -> Versions | None:
    """Two versions of one log, or a log and the log that it is compared with."""
    if compared is None:
        traces, alphabet = log.traces, log.alphabet
        named = [trace.version for trace in traces]
    else:
        traces, alphabet = log.traces + compared.traces, (*log.alphabet, *compared.alphabet)
        named = [settings.logs[0]] * len(log) + [settings.logs[1]] * len(compared)
    alphabet = tuple(dict.fromkeys(alphabet))
    counts = Counter(named)
    chosen = _chosen(counts, settings.between if compared is None else settings.logs)
    if chosen is None:
        return None
    earlier, later = _in_time(chosen, named, traces)
    groups = [np.array([name == version for name in named]) for version in (later, earlier)]
    taking_part = np.flatnonzero(groups[0] | groups[1])
    sequences, tasks = [traces[place].skills for place in taking_part], [trace.task for trace in traces]
    held = holdings(_fit(sequences, alphabet, settings), sequences)
    dictionaries = [_fit(_corpus(traces, group), alphabet, settings) for group in groups]
    return Versions(
        compare(
            held,
            groups[0][taking_part],
            groups[1][taking_part],
            [tasks[place] for place in taking_part],
            (later, earlier),
        ),
        answer([trace.success for trace in traces], groups[1], groups[0], tasks, (earlier, later)),
        overlap=overlap(dictionaries[0].learned_counts, dictionaries[1].learned_counts),
        learned=(len(dictionaries[0].learned), len(dictionaries[1].learned)),
        others={name: count for name, count in counts.items() if name not in (earlier, later)},
    )


def _in_time(chosen: tuple[str, str], named: Sequence[str], traces: Sequence[LoggedTrace]) -> tuple[str, str]:
    """(the earlier version, the later one): by their times if these do not overlap, else as named."""
    first, second = (
        [it.time for name, it in zip(named, traces, strict=True) if name == version and it.time is not None]
        for version in chosen
    )
    return chosen[::-1] if first and second and max(second) < min(first) else chosen


def _chosen(counts: Counter[str], between: tuple[str, str] | None) -> tuple[str, str] | None:
    if between is not None:
        if between[0] == between[1]:
            raise TracesError(f"--between: {between[0]!r} is named twice; name two versions")
        for name in between:
            if name not in counts:
                known = ", ".join(repr(version) for version, _ in counts.most_common(10))
                near = did_you_mean(name, counts)
                raise TracesError(f"--between: no trace is of version {name!r}; there are {known}{near}")
        return between
    if len(counts) < 2:
        return None
    most = {name for name, _ in counts.most_common(2)}
    first, second = (name for name in counts if name in most)
    return first, second


def _corpus(traces: Sequence[LoggedTrace], group: NDArray[np.bool_]) -> list[Skills]:
    """A version's successes, or all its traces if it has none."""
    version = [traces[place] for place in np.flatnonzero(group)]
    return [trace.skills for trace in version if trace.success] or [trace.skills for trace in version]


def _ordered(fitted: Sequence[LoggedTrace]) -> tuple[list[Skills], str]:
    """The fitted sequences in the order of time, and what gives the order."""
    known = [trace.time for trace in fitted if trace.time is not None]
    if len(known) < len(fitted) or len(set(known)) < 2:
        return [trace.skills for trace in fitted], "their place in the files"
    order = np.argsort(np.array(known), kind="stable")
    return [fitted[place].skills for place in order], "time"
