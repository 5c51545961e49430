"""Skills as coloured cells, and phrases as the outlined boxes around them.

The boxes show the segmentation seg(s, 𝒞): one cell per skill and one box per phrase, so the number of boxes
is the cost in training. The page draws them as nested lists, which wrap on narrow screens and read in order
without colours. A step without a skill is drawn in the box that it interrupts, or on its own between two
phrases. A step with several skills has a cell for each; only the first shows the action, and a box may end
between two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillpress.reports.framing import framed
from skillpress.reports.report.data import Example, ExampleStep
from skillpress.reports.report.theme import family


@dataclass(frozen=True)
class SkillBox:
    """One skill of a step, a step without a skill, or one skill of a listed phrase."""

    family: str
    """Skill family in words; empty for a step without a skill."""
    detail: str
    """The rest of the skill's name; may be empty."""
    color: str
    """Fill colour; empty for a step without a skill."""
    action: str = ""
    """The step's action; empty after the first of its skills, and in a listed phrase."""
    invalid: bool = False


@dataclass(frozen=True)
class Box:
    """The cells that one phrase covers."""

    cells: tuple[SkillBox, ...]
    is_phrase: bool = True
    """False for a step without a skill between two phrases."""


def phrase_box(phrase: Sequence[str], colors: Mapping[str, str]) -> Box:
    """A phrase of the dictionary as a box, without actions."""
    return Box(tuple(_cell(skill, colors) for skill in phrase))


def example_boxes(example: Example, colors: Mapping[str, str]) -> list[Box]:
    """The boxes of an episode, in order; every cell is in exactly one box.

    Raises:
        ValueError: the phrases do not concatenate to the skills of the steps.
    """
    skills = [skill for step in example.steps for skill in step.skills]
    if [skill for phrase in example.phrases for skill in phrase] != skills:
        raise ValueError(f"{example.title}: the phrases are not a segmentation of the steps' skills")
    cells = [cell for step in example.steps for cell in _step_cells(step, colors)]
    frames = framed(cells, example.phrases, lambda cell: bool(cell.color))
    return [Box(tuple(inside), is_phrase=phrase is not None) for inside, phrase in frames]


def _step_cells(step: ExampleStep, colors: Mapping[str, str]) -> list[SkillBox]:
    none = SkillBox(family="", detail="", color="")
    first, *others = [_cell(skill, colors) for skill in step.skills] or [none]
    first = replace(first, action=step.action or "(unreadable)")
    return [replace(cell, invalid=step.invalid) for cell in (first, *others)]


def _cell(skill: str, colors: Mapping[str, str]) -> SkillBox:
    name = family(skill)
    detail = skill.removeprefix(name).lstrip("-")
    return SkillBox(
        family=name.replace("_", " "), detail=detail.replace("-", ", ").replace("_", " "), color=colors[name]
    )
