"""The judge of questions: its prompt, how its verdict is read, and which questions are dropped."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.judge.objectivity import (
    judge_objectivity,
    prompt_of,
    read_objectivity,
)


@pytest.mark.parametrize(
    ("response", "objective"),
    [
        ("Fit: yes", True),
        ("One man wrote it.\nFit: no", False),
        ("One man wrote it.\n\n**Final verdict: YES**\n", True),
        ("no.", False),
        ("Yes", True),
        ("The fit is: Yes", None),  # prose, not a line of its own
        ("It moves.\nno", None),  # of several lines one must say that it is the verdict
        ("Fit: yes\nFit: no", None),
        ("Fit: yes\nFit: Yes", True),
        ("Fit: maybe", None),
        ("Fit:", None),
        ("", None),
        ("<think>Fit: no, or</think>Fit: yes", True),
        ("<think>Fit: no", None),  # cut off while it thought
        ("nobody", None),
        ("- * " * 20_000 + "x", None),
    ],
)
def test_how_a_verdict_is_read(response: str, objective: bool | None) -> None:
    assert read_objectivity(response) is objective


@given(st.text(), st.lists(st.text(), max_size=3))
def test_a_question_stands_in_the_prompt_as_one_line_of_json(question: str, answers: list[str]) -> None:
    lines = prompt_of(question, answers).split("\n")
    (asked,) = (line for line in lines if line.startswith("Question: "))
    (reference,) = (line for line in lines if line.startswith("Reference: "))
    assert json.loads(asked.removeprefix("Question: ")) == question
    assert json.loads(reference.removeprefix("Reference: ")) == answers


def test_each_question_has_its_verdict() -> None:
    def ask(prompts: Sequence[str]) -> list[str]:
        said = {"Emma": "Fit: yes", "funniest": "A matter of taste.\nFit: no", "sang": "I would think so."}
        return [next(answer for word, answer in said.items() if word in prompt) for prompt in prompts]

    questions = ["Who is the funniest?", "Who wrote Emma?", "Who sang it?"]
    assert judge_objectivity(questions, [["X"], ["Jane Austen"], ["Z", "The Z"]], ask) == [False, True, None]


def test_a_judge_that_leaves_one_out_is_an_error() -> None:
    with pytest.raises(ValueError, match="gave 1 responses to 2 prompts"):
        judge_objectivity(["a?", "b?"], [["x"], ["y"]], lambda prompts: ["Fit: yes"])
