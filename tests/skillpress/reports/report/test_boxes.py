"""Boxes are the segmentation: every skill in exactly one box, one box per phrase."""

from __future__ import annotations

import pytest

from skillpress.reports.report.boxes import example_boxes
from skillpress.reports.report.data import Example, ExampleStep
from skillpress.reports.report.theme import family_colors

COLORS = family_colors(["A-x", "A-y", "B"])


def boxes(skills, phrases):
    steps = tuple(ExampleStep(f"act {index}", tuple(each.split())) for index, each in enumerate(skills))
    found = example_boxes(Example("an episode", "", steps, phrases), COLORS)
    return [(box.is_phrase, [cell.action for cell in box.cells]) for box in found]


def test_one_box_per_phrase():
    assert boxes(["A-x", "B", "B"], (("A-x", "B"), ("B",))) == [
        (True, ["act 0", "act 1"]),
        (True, ["act 2"]),
    ]


def test_a_step_without_a_skill_stands_in_the_phrase_it_interrupts_or_alone():
    assert boxes(["", "A-x", "", "B", ""], (("A-x", "B"),)) == [
        (False, ["act 0"]),
        (True, ["act 1", "act 2", "act 3"]),
        (False, ["act 4"]),
    ]


def test_a_box_may_end_between_two_skills_of_one_step():
    """act 1 makes two calls; its second cell has no action of its own."""
    assert boxes(["A-x", "B A-x", "", "B"], (("A-x", "B"), ("A-x", "B"))) == [
        (True, ["act 0", "act 1"]),
        (True, ["", "act 2", "act 3"]),
    ]


def test_skills_of_one_family_share_a_colour_and_families_differ():
    assert set(COLORS) == {"A", "B"}
    assert COLORS["A"] != COLORS["B"]


def test_phrases_that_are_no_segmentation_are_refused():
    with pytest.raises(ValueError, match="an episode: the phrases are not a segmentation"):
        boxes(["A-x", "B"], (("B", "A-x"),))
