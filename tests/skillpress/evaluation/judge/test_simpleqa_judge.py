"""The judge: its prompt, how its verdict is read, and how grades are counted."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.trajectory import TokenIds
from skillpress.evaluation.judge.simpleqa import (
    Answered,
    JudgeCounts,
    count_grades,
    grade_answers,
    prompt_of,
    read_grade,
)
from skillpress.evaluation.judge.verdicts import ask_engine
from skillpress.models.engines.batch import BatchEngine
from skillpress.rollouts.chat.asking import ask_server


@pytest.mark.parametrize(
    ("response", "grade"),
    [
        ("A", "correct"),
        ("B.", "incorrect"),
        (" (C) ", "not_attempted"),
        ("**A**", "correct"),
        ("A: CORRECT", "correct"),
        ("INCORRECT", "incorrect"),
        ("not attempted", "not_attempted"),
        ("They agree.\nGrade: A", "correct"),
        ("They differ.\n\n**Final grade: (B)**\n", "incorrect"),
        ("It declines.\nGrade: C (NOT_ATTEMPTED)", "not_attempted"),
        ("Verdict: incorrect", "incorrect"),
        ("The final line.\nThe grade is A", None),  # prose, not a line of its own
        ("Grade is B", "incorrect"),
        ("Grade: A\nGrade: A", "correct"),
        ("<think>Grade: B, or</think>Grade: A", "correct"),
        ("<think>Grade: A", None),  # cut off while it thought
        ("", None),
        ("Grade:", None),
        ("Grade: D", None),
        ("Grade: A or B", None),
        ("Grade: A\nGrade: B", None),
        ("Grade: A (INCORRECT)", None),
        ("A\nbecause they agree", None),
        ("a", None),
        ("Apples", None),
        ("The answer is correct", None),
        ("CORRECTED", None),
        ("-" * 100_000 + "?", None),
        ("- * " * 20_000 + "x", None),
    ],
)
def test_how_a_verdict_is_read(response: str, grade: str | None) -> None:
    assert read_grade(response) == grade


@given(
    st.text() | st.lists(st.sampled_from(["Grade", ":", "A", "B", "\n", "correct", "<think>"])).map("".join)
)
def test_reading_never_raises_and_never_guesses(response: str) -> None:
    assert read_grade(response) in ("correct", "incorrect", "not_attempted", None)
    if not any(letter in response.upper() for letter in "ABC"):
        assert read_grade(response) is None


@given(st.text(max_size=300))
def test_no_answer_writes_a_line_of_the_prompt(predicted: str) -> None:
    plain = prompt_of(Answered("Who?", ["Ada"], "x"))
    prompt = prompt_of(Answered("Who?", ["Ada"], predicted))
    assert prompt.count("\n") == plain.count("\n")
    line = next(line for line in prompt.split("\n") if line.startswith("Answer: "))
    assert json.loads(line.removeprefix("Answer: ")) == predicted


def test_braces_in_a_question_are_text() -> None:
    assert '"{answer} of {}?"' in prompt_of(Answered("{answer} of {}?", ["Ada"], "x"))


ANSWERED = [
    Answered("Who wrote it?", ["Homer"], "homer"),
    Answered("Who wrote it?", ["Homer"], "Ovid"),
    Answered("Who wrote it?", ["Homer"], None),
    Answered("Who wrote it?", ["Homer"], " \n"),
    Answered("Who wrote it?", ["Homer"], "nobody knows"),
    Answered("Who wrote it?", ["Homer"], "???"),
]


def by_the_book(prompt: str) -> str:
    """A judge that knows one question."""
    answer = json.loads(prompt.split("\nAnswer: ")[1].split("\n")[0])
    return {"homer": "Same.\nGrade: A", "Ovid": "Other.\nGrade: B", "nobody knows": "C"}.get(answer, "Hm.")


def encode(text: str) -> TokenIds:
    return tuple(text.encode())


def decode(ids: TokenIds) -> str:
    return bytes(ids).decode()


class JudgeEngine(BatchEngine):
    """Answers by the book, and records its seeds."""

    promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=True)

    def __init__(self) -> None:
        super().__init__()
        self.seeds: dict[str, int] = {}

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        texts = [decode(prompt) for prompt in prompts]
        self.seeds |= dict(zip(texts, seeds, strict=True))
        ids = [encode(by_the_book(text)) for text in texts]
        return [Completion(i, (0.0,) * len(i), "stop") for i in ids]

    def update_weights(self, weights: StateDict, version: int) -> None:
        raise AssertionError("no training runs here")


def test_an_engine_grades_and_what_cannot_be_read_is_counted_apart() -> None:
    ask = ask_engine(JudgeEngine(), encode, decode, Sampling(temperature=0), seed=3)
    grades = grade_answers(ANSWERED, ask)
    assert grades == ["correct", "incorrect", "not_attempted", "not_attempted", "not_attempted", None]
    assert count_grades(grades) == JudgeCounts(correct=1, incorrect=1, not_attempted=3, unreadable=1)


def test_a_grades_seed_does_not_hang_on_the_other_answers() -> None:
    engine, alone = JudgeEngine(), JudgeEngine()
    grade_answers(ANSWERED, ask_engine(engine, encode, decode, Sampling(), seed=3))
    grade_answers(ANSWERED[1:2], ask_engine(alone, encode, decode, Sampling(), seed=3))
    assert alone.seeds.items() < engine.seeds.items()
    assert len(set(engine.seeds.values())) == len(engine.seeds)


def test_a_server_grades_the_same_and_its_errors_come_through() -> None:
    def reply(prompt: str, seed: int, what: str) -> str:
        return by_the_book(prompt)

    def silent(prompt: str, seed: int, what: str) -> str:
        raise TimeoutError(what)

    in_order = grade_answers(ANSWERED, ask_server(reply, 3, seed=0))
    assert in_order == ["correct", "incorrect", "not_attempted", "not_attempted", "not_attempted", None]
    with pytest.raises(TimeoutError, match="answer 0 to be judged"):
        grade_answers(ANSWERED, ask_server(silent, 1, seed=0))


def test_a_judge_that_loses_a_response_is_refused() -> None:
    with pytest.raises(ValueError, match="0 responses to 4 prompts"):
        grade_answers(ANSWERED, lambda prompts: [])


@pytest.mark.parametrize("unreadable", [0, 4, 1000])
def test_simpleqas_figures_of_counts_do_not_count_what_has_no_grade(unreadable: int) -> None:
    counts = JudgeCounts(correct=30, incorrect=30, not_attempted=40, unreadable=unreadable)
    assert counts.score == pytest.approx(0.3)
    assert counts.correct_given_attempted == pytest.approx(0.5)
    assert counts.f_score == pytest.approx(0.375)  # 2 / (1 / 0.3 + 1 / 0.5)


def test_without_grades_the_figures_are_0() -> None:
    nothing = JudgeCounts(0, 0, 0, 0)
    assert nothing.score == nothing.correct_given_attempted == nothing.f_score == 0.0
