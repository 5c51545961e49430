"""The traces behind the phrases, step by step, as the page shows them.

A trace is drawn as its cut: one frame per phrase, around the steps that it covers (``framing.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillpress.core.visible import line, visible
from skillpress.environments.calls.steps import TraceStep, action_of, text_of
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.projection import Labels, TraceProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import Trace
from skillpress.reports.framing import framed
from skillpress.reports.skills_page.content import Content
from skillpress.skills.dictionary import SkillDictionary

ROUTINES, CONTRASTS = 40, 30
"""The page shows at most this many phrases; the files next to it list all."""
STEPS = 60
"""The most steps of a trace that are shown."""
ACTION, ANSWER = 400, 300
"""The most characters of a step that are shown."""


@dataclass(frozen=True)
class ShownStep:
    """One step, or a further skill of the step above."""

    number: int
    skill: str | None
    tool: str
    action: str
    answer: str
    refused: bool
    first: bool = True
    """Whether it is the line of the step itself; a step of several skills has further lines."""


@dataclass(frozen=True)
class Frame:
    """The steps that one phrase covers, or one step between two phrases."""

    steps: tuple[ShownStep, ...]
    learned: bool
    omitted: int = 0
    """Steps before it that are not shown."""


@dataclass(frozen=True)
class TraceEpisode:
    """One trace."""

    position: int
    """The trace's position in the log."""
    name: str
    place: str
    outcome: str
    version: str
    frames: tuple[Frame, ...]
    steps: int
    viewer: str | None
    """The trace's id in the viewer, ``<source>-<episode number>``; None if its file is not a rollout file."""


def shown_positions(content: Content) -> list[int]:
    """The traces that some phrase on the page lists, in the log's order."""
    named: set[int] = set()
    for routine in content.routines[:ROUTINES]:
        named.update(routine.examples)
    if content.success is not None:
        for contrast in content.success.contrasts[:CONTRASTS]:
            named.update(content.contrast_examples[contrast.phrase])
    return sorted(named)


def episodes(content: Content, projection: TraceProjection, wanted: Wanted) -> list[TraceEpisode]:
    """Read these traces again, in the log's order."""
    log = content.log
    found = {
        position: _episode(log, position, trace, projection, content.dictionary)
        for position, trace in traces_at(log, wanted, shown_positions(content))
    }
    return [found[position] for position in sorted(found)]


def frames(steps: Sequence[ShownStep], dictionary: SkillDictionary) -> list[Frame]:
    """The steps in frames by their cut; every step is in exactly one frame."""
    phrases = dictionary.segment([step.skill for step in steps if step.skill is not None])
    found = framed(steps, phrases, lambda step: step.skill is not None)
    return [Frame(tuple(inside), learned=len(phrase or ()) > 1) for inside, phrase in found]


def viewer_id(log: Log, position: int) -> str | None:
    """The id ``<source>-<episode number>``; sources are the rollout files in the order given."""
    place = log.traces[position].place
    return f"{log.parquet.index(place.file)}-{place.number}" if place.file in log.parquet else None


def place_of(log: Log, position: int) -> str:
    """The place of a trace, in words."""
    place = log.traces[position].place
    counted = "episode" if place.file in log.parquet else "line" if place.offset >= 0 else "item"
    return f"{log.files[place.file]}, {counted} {place.number}"


def _episode(
    log: Log, position: int, trace: Trace, projection: TraceProjection, dictionary: SkillDictionary
) -> TraceEpisode:
    whole = frames(shown_steps(trace, projection, log.renamed), dictionary)
    return episode_of(log, position, trace, tuple(_first(whole)))


def episode_of(log: Log, position: int, trace: Trace, shown: tuple[Frame, ...]) -> TraceEpisode:
    """A trace with these frames."""
    return TraceEpisode(
        position,
        line(trace.name, 80),
        place=line(place_of(log, position), 160),
        outcome={True: "success", False: "failure", None: "outcome unknown"}[trace.success],
        version=line(trace.version, 60),
        frames=shown,
        steps=len(trace.steps),
        viewer=viewer_id(log, position),
    )


def shown_steps(trace: Trace, projection: TraceProjection, renamed: Mapping[str, str]) -> list[ShownStep]:
    """The steps of a trace with their skills."""
    return list(_shown(trace.steps, _skills(projection(trace.steps), renamed)))


def _skills(found: Iterable[Labels], renamed: Mapping[str, str]) -> Iterator[list[str]]:
    return ([renamed[label] for label in labels if label in renamed] for labels in found)


def _shown(steps: Sequence[TraceStep], skills: Iterable[Sequence[str]]) -> Iterator[ShownStep]:
    """Each step, and below it a line for each further skill."""
    for number, (step, found) in enumerate(zip(steps, skills, strict=True), 1):
        yield ShownStep(
            number,
            found[0] if found else None,
            tool="" if step.tool is None else line(step.tool, 60),
            action=visible(action_of(step), ACTION),
            answer=visible(text_of(step.answer), ANSWER),
            refused=step.refused,
        )
        for skill in found[1:]:
            yield ShownStep(number, skill, tool="", action="", answer="", refused=False, first=False)


def _first(whole: Sequence[Frame]) -> Iterator[Frame]:
    """The first frames with ``STEPS`` steps; the last frame is kept whole."""
    count = 0
    for frame in whole:
        if count >= STEPS:
            return
        count += len(frame.steps)
        yield frame
