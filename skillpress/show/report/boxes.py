"""Skills as coloured cells, and phrases as the outlined boxes around them.

The boxes show the segmentation seg(s, 𝒞): one cell per step and one box per phrase, so the number of boxes is
the cost in training. The page draws them as nested lists, which wrap on narrow screens and read in order
without colours. A step without a skill is drawn in the box that it interrupts, or on its own between two
phrases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillpress.show.report.data import Example, ExampleStep
from skillpress.show.report.theme import family


@dataclass(frozen=True)
class Cell:
    """One step, or one skill of a listed phrase."""

    family: str
    """Skill family in words; empty for a step without a skill."""
    detail: str
    """The rest of the skill's name; may be empty."""
    color: str
    """Fill colour; empty for a step without a skill."""
    action: str = ""
    """The step's action; empty in a listed phrase."""
    invalid: bool = False


@dataclass(frozen=True)
class Box:
    """The cells that one phrase covers."""

    cells: tuple[Cell, ...]
    is_phrase: bool = True
    """False for a step without a skill between two phrases."""


def phrase_box(phrase: Sequence[str], colors: Mapping[str, str]) -> Box:
    """A phrase of the dictionary as a box, without actions."""
    return Box(tuple(_cell(skill, colors) for skill in phrase))


def example_boxes(example: Example, colors: Mapping[str, str]) -> list[Box]:
    """The boxes of an episode, in order; every step is in exactly one box.

    Raises:
        ValueError: the phrases do not concatenate to the skills of the steps.
    """
    skills = [step.skill for step in example.steps if step.skill is not None]
    if [skill for phrase in example.phrases for skill in phrase] != skills:
        raise ValueError(f"{example.title}: the phrases are not a segmentation of the steps' skills")
    boxes: list[Box] = []
    waiting = list(example.steps)
    for phrase in example.phrases:
        while waiting[0].skill is None:
            boxes.append(Box((_step_cell(waiting.pop(0), colors),), is_phrase=False))
        cells: list[Cell] = []
        missing = len(phrase)
        while missing:
            step = waiting.pop(0)
            missing -= step.skill is not None
            cells.append(_step_cell(step, colors))
        boxes.append(Box(tuple(cells)))
    return boxes + [Box((_step_cell(step, colors),), is_phrase=False) for step in waiting]


def _step_cell(step: ExampleStep, colors: Mapping[str, str]) -> Cell:
    cell = _cell(step.skill, colors) if step.skill is not None else Cell(family="", detail="", color="")
    return replace(cell, action=step.action or "(unreadable)", invalid=step.invalid)


def _cell(skill: str, colors: Mapping[str, str]) -> Cell:
    name = family(skill)
    detail = skill.removeprefix(name).lstrip("-")
    return Cell(
        family=name.replace("_", " "), detail=detail.replace("-", ", ").replace("_", " "), color=colors[name]
    )
