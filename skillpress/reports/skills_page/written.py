"""The written skills with their runs: each text, and the places in its runs where the routine was used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.core.visible import visible
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.projection import TraceProjection
from skillpress.logs.reading_again import traces_at
from skillpress.reports.skills_page.episodes import Frame, ShownStep, TraceEpisode, episode_of, shown_steps
from skillpress.skills.dictionary import Skills

RUNS, AROUND = 3, 2
"""Number of runs shown for each skill, and of steps shown before and after a use."""
LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class SkillText:
    """A skill that was written."""

    name: str
    text: str
    """Its SKILL.md."""
    phrase: Skills
    holders: tuple[int, ...]
    """Positions in the log of the runs that hold the routine."""


@dataclass(frozen=True)
class WrittenSkill:
    """A skill as the page shows it."""

    name: str
    text: str
    holders: int
    runs: tuple[TraceEpisode, ...]
    """The first runs that use it. Frames that are learned are its uses."""


def beside_runs(
    skills: Sequence[SkillText], log: Log, wanted: Wanted, projection: TraceProjection
) -> list[WrittenSkill]:
    """The skills with the first runs of each, which are read again."""
    read = dict(traces_at(log, wanted, sorted({place for skill in skills for place in skill.holders[:RUNS]})))
    steps = {place: shown_steps(trace, projection, log.renamed) for place, trace in read.items()}
    return [
        WrittenSkill(
            skill.name,
            visible(skill.text, LONGEST_TEXT),
            holders=len(skill.holders),
            runs=tuple(
                episode_of(log, place, read[place], tuple(uses_in(steps[place], skill.phrase)))
                for place in skill.holders[:RUNS]
                if place in read
            ),
        )
        for skill in skills
    ]


def uses_in(steps: Sequence[ShownStep], phrase: Skills) -> Iterator[Frame]:
    """The uses of a phrase, and a few steps around each; steps without a skill are not part of a use."""
    named = [place for place, step in enumerate(steps) if step.skill is not None]
    skills = tuple(steps[place].skill for place in named)
    uses, number = list[tuple[int, int]](), 0
    while number + len(phrase) <= len(skills):
        if skills[number : number + len(phrase)] == phrase:
            uses.append((named[number], named[number + len(phrase) - 1] + 1))
            number += len(phrase)
        else:
            number += 1
    shown = 0
    for (begin, end), following in zip(uses, [*uses[1:], (len(steps), 0)], strict=False):
        before = max(shown, begin - AROUND)
        if before < begin:
            yield Frame(tuple(steps[before:begin]), learned=False, omitted=_distinct(steps[shown:before]))
        yield Frame(tuple(steps[begin:end]), learned=True)
        shown = min(end + AROUND, following[0])
        if end < shown:
            yield Frame(tuple(steps[end:shown]), learned=False)


def _distinct(steps: Sequence[ShownStep]) -> int:
    """The number of steps, without the further skills of a step."""
    return sum(step.first for step in steps)
