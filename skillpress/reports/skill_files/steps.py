"""The steps of a routine with generalised arguments, and the forms that its uses give them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillpress.environments.calls.steps import TraceStep, action_of, arguments_of, text_of
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.reading import Use
from skillpress.reports.skill_files.words import common, fixed
from skillpress.skills.dictionary import Skills

LONGEST_VALUE = 200
"""Longer arguments, and those of several lines, are a text without its words."""
MOST_FORMS = 4


@dataclass(frozen=True)
class RoutineStep:
    """One step of a routine."""

    skill: str
    form: str
    """What all uses share, with a place for the rest; empty if too few could be read again."""
    forms: tuple[tuple[str, int], ...]
    """Forms of uses with the same first words, with their number of uses; empty if there is one form."""


@dataclass(frozen=True)
class Needed:
    """What a form of some of the uses must be shared by."""

    runs: int
    tasks: int


def steps_of(phrase: Skills, uses: Sequence[Use], tasks: Sequence[str], needed: Needed) -> list[RoutineStep]:
    """The steps of a routine.

    Args:
        tasks: the task of each run of the log; empty for a run that stands alone.
    """
    return [
        _step(skill, [(use, use.steps[place]) for use in uses], tasks, needed)
        for place, skill in enumerate(phrase)
    ]


def _step(
    skill: str, calls: Sequence[tuple[Use, TraceStep]], tasks: Sequence[str], needed: Needed
) -> RoutineStep:
    groups: dict[tuple[str, ...], list[tuple[Use, TraceStep]]] = defaultdict(list)
    for use, step in calls:
        groups[_beginning(step)].append((use, step))
    ranked = sorted(groups.values(), key=len, reverse=True)
    forms = [
        (form_of([step for _, step in group]), len(group))
        for group in ranked
        if len(groups) > 1 and _shared(group, tasks, needed)
    ]
    whole = form_of([step for _, step in calls]) if _shared(calls, tasks, needed) else ""
    return RoutineStep(skill, whole, tuple(forms[:MOST_FORMS]))


def _shared(calls: Sequence[tuple[Use, TraceStep]], tasks: Sequence[str], needed: Needed) -> bool:
    """Whether enough runs and tasks have these calls for a skill to hold their common words."""
    runs = {use.run for use, _ in calls}
    return len(runs) >= needed.runs and len({tasks[run] or str(run) for run in runs}) >= needed.tasks


def form_of(steps: Sequence[TraceStep]) -> str:
    """The common form of calls: of the commands, the words, or each argument."""
    tools = {step.tool for step in steps}
    named = [arguments_of(step) for step in steps]
    if len(tools) > 1:  # agents name their shells differently: a command is the same in each
        told = common(_value(action_of(step)) for step in steps) if all(len(it) == 1 for it in named) else ""
        others = ", ".join(sorted(cleaned(tool or "words") for tool in tools)[:MOST_FORMS])
        return told if fixed(told) else f"one of {others}"
    if any(len(arguments) != 1 for arguments in named) and any(named):
        return _call(cleaned(steps[0].tool or ""), named)
    return common(_value(action_of(step)) for step in steps)


def _call(tool: str, named: Sequence[Mapping[str, object]]) -> str:
    """The common form of calls with named arguments."""
    counts: dict[str, list[str]] = defaultdict(list)
    for arguments in named:
        for key, value in arguments.items():
            counts[cleaned(str(key))].append(_value(text_of(value)))
    shared = [f"{key}: {common(values)}" for key, values in counts.items() if len(values) == len(named)]
    return f"{tool}({', '.join(shared)})"


def _value(text: str) -> str:
    if len(text) > LONGEST_VALUE or "\n" in text.strip():
        return "<text>"
    return cleaned(text)


def _beginning(step: TraceStep) -> tuple[str, ...]:
    """The first two words of a command; forms with different ones are different."""
    words = [word for word in fixed(common([_value(action_of(step))]))[:2] if word.isidentifier()]
    return tuple(words) if len(arguments_of(step)) <= 1 else ()
