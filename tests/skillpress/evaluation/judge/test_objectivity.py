"""The judge of questions: its prompt, and how its two ratings are read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.judge.objectivity import VALUES, Ratings, prompt_of, rate_questions, read_ratings


@pytest.mark.parametrize(
    ("response", "stability", "objectivity"),
    [
        ("Stability: 1\nObjectivity: 1", 1, 1),
        ("A mayor changes.\nStability: -1\nObjectivity: 1", -1, 1),
        ("**Objectivity rating: 0**\n\n- Temporal stability: **1**.", 1, 0),
        ("stability is 0\nOBJECTIVITY = -1", 0, -1),
        ("Stability: \u22121\nObjectivity: \u20131", -1, -1),  # a minus sign, and a dash in its place
        ("Stability: +1 (never changes)\nObjectivity: 1 (facts alone)", 1, 1),
        ("Stability: 1 (or 0)\nObjectivity: 1", None, 1),
        ("Stability - 1\nObjectivity: 1", None, 1),  # minus one, or a dash and one
        ("Stability: 1\nStability: 0\nObjectivity: 1", None, 1),
        ("Stability: 1\nStability: 1\nObjectivity: 1", 1, 1),
        ("Stability: 2\nObjectivity: 10", None, None),
        ("Stability: 0.7\nObjectivity: high", None, None),
        ("Its stability is 1 and its objectivity is 1.", None, None),  # prose, not lines of their own
        ("Stability: 1, Objectivity: 1", None, None),
        ("1\n1", None, None),
        ("", None, None),
        ("<think>Stability: -1</think>Stability: 1\nObjectivity: 1", 1, 1),
        ("<think>Stability: 1\nObjectivity: 1", None, None),  # cut off while it thought
        ("Stability: 1" + "(" * 50_000 + "x\nObjectivity:" + " *" * 50_000, None, None),
    ],
)
def test_how_ratings_are_read(response: str, stability: int | None, objectivity: int | None) -> None:
    assert read_ratings(response) == Ratings(stability, objectivity)


@given(st.text() | st.lists(st.sampled_from(["Stability", ": ", "-", "1", "0", "\n", "(", ")"])).map("".join))
def test_a_rating_is_one_of_three_values_or_none(response: str) -> None:
    found = read_ratings(response)
    assert {found.stability, found.objectivity} <= {*VALUES, None}
    if "1" not in response and "0" not in response:
        assert found == Ratings(None, None)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_a_question_stands_in_the_prompt_as_one_line_of_json(question: str, answers: list[str]) -> None:
    lines = prompt_of(question, answers).split("\n")
    (asked,) = (line for line in lines if line.startswith("Question: "))
    (reference,) = (line for line in lines if line.startswith("Reference: "))
    assert json.loads(asked.removeprefix("Question: ")) == question
    assert json.loads(reference.removeprefix("Reference: ")) == answers


def test_each_question_has_its_ratings() -> None:
    def ask(prompts: Sequence[str]) -> list[str]:
        said = {
            "Emma": "Stability: 1\nObjectivity: 1",
            "funniest": "A matter of taste.\nStability: 0\nObjectivity: -1",
            "sang": "I would think so.",
        }
        return [next(answer for word, answer in said.items() if word in prompt) for prompt in prompts]

    questions = ["Who is the funniest?", "Who wrote Emma?", "Who sang it?"]
    found = rate_questions(questions, [["X"], ["Jane Austen"], ["Z", "The Z"]], ask)
    assert found == [Ratings(0, -1), Ratings(1, 1), Ratings(None, None)]


def test_a_judge_that_leaves_one_out_is_an_error() -> None:
    with pytest.raises(ValueError, match="gave 1 responses to 2 prompts"):
        rate_questions(["a?", "b?"], [["x"], ["y"]], lambda prompts: ["Stability: 1\nObjectivity: 1"])
