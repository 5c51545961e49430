"""ERL: which episodes it tries again, what the second attempt knows, and what training learns from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Step, Summary, Task, Trajectory
from skillpress.training.experience.erl import (
    ERL,
    LEARNED,
    ERLParameters,
    RandomWords,
    Reflecting,
    account,
)
from skillpress.training.experience.experience import LessonTokens, Setting

TASK = Task("t", "none", 0, {})
WORDS = ("up", "down", "left", "right", "stop")


def erl(words: int | None = 3, retries: int = 8, reflection: str = "own") -> ERL:
    section = {"name": "erl", "distill": 0.5, "kl": 0.5, "retries": retries, "reflection": reflection}
    setting = Setting(
        seed=0,
        decode=lambda ids: " ".join(WORDS[token] for token in ids),
        vocabulary=lambda: WORDS,
        words=words,
        characters=200,
    )
    return ERL(ERLParameters.model_validate(section), setting)


def step(response: tuple[int, ...], plain: tuple[int, ...] | None = None) -> Step:
    prompt, logprobs = (7, 8, 9), (-1.0,) * len(response)
    return Step(prompt, response, logprobs, "", "act", "seen", None, (), plain_prompt_ids=plain)


def episode(index: int, won: bool, *steps: Step, group: str = "train/1/t") -> Trajectory:
    outcome = "won" if won else "stuck"
    return Trajectory("t", group, index, steps or (step((0,)),), won, True, False, outcome, 3, 100 + index)


def test_failures_alone_are_tried_again_and_no_more_of_a_group_than_may_be() -> None:
    played = [episode(index, won=index in (1, 4)) for index in range(6)]
    other = [replace(episode(n, won=False, group="train/1/u"), seed=200 + n) for n in range(2)]
    wanted = erl(retries=3).attempts([TASK] * 8, [*played, *other])
    assert [(each.group_id, each.rollout_index) for each in wanted] == [
        ("train/1/t/second", 0), ("train/1/t/second", 2), ("train/1/t/second", 3),
        ("train/1/u/second", 0), ("train/1/u/second", 1),
    ]  # fmt: skip
    first = {each.seed for each in [*played, *other]}
    assert len({each.seed for each in wanted} | first) == 5 + len(first), "seeds of their own"
    assert wanted == erl(retries=3).attempts([TASK] * 8, [*played, *other])
    assert erl().attempts([TASK], [episode(0, won=True)]) == []


def test_a_compact_second_attempt_knows_the_last_words_that_were_tried_and_is_asked_nothing() -> None:
    failed = episode(0, False, step((0, 1)), step((2,)), step((3, 4)))
    (wanted,) = erl(words=4).attempts([TASK], [failed])
    assert (wanted.knowledge, wanted.attempt) == ("down left right stop", "")
    assert erl(words=4).reflection is None
    (short,) = erl(words=40).attempts([TASK], [failed])
    assert short.knowledge == "up down left right stop"


def test_a_second_attempt_in_text_is_asked_to_reflect_on_what_was_done_and_seen() -> None:
    failed = episode(
        0, False, *(replace(step((0,)), action=f"go {n}", observation=f"O{n}") for n in range(9))
    )
    (wanted,) = erl(words=None).attempts([TASK], [failed])
    assert wanted.knowledge == "" and "failed (stuck)" in wanted.attempt
    assert wanted.attempt.endswith("Step 9: you did 'go 8' and saw 'O8'.\n")
    assert "'go 0'" not in wanted.attempt, "the oldest steps do not fit"
    assert len(wanted.attempt) < 300


@given(st.lists(st.text(max_size=2000), min_size=1, max_size=30), st.integers(1, 5000))
def test_an_account_is_bounded_and_holds_the_last_step(seen: list[str], characters: int) -> None:
    failed = episode(0, False, *(replace(step((0,)), observation=each) for each in seen))
    told = account(failed, characters)
    assert f"Step {len(seen)}: " in told and len(told) < characters + 900


def test_a_reflection_stands_under_a_heading_and_what_is_none_leaves_nothing() -> None:
    reflecting = Reflecting(str)
    assert reflecting.knowledge(reflecting.read("<think>hm</think> turn left")) == f"{LEARNED}\nturn left\n"
    for response in ("", "<think>hm</think>", "<think>cut off"):
        assert reflecting.knowledge(reflecting.read(response)) == ""


@given(st.lists(st.sampled_from(WORDS), max_size=20), st.integers(0, 50))
def test_the_control_has_as_many_words_and_the_same_ones_each_time(words: list[str], seed: int) -> None:
    text = " ".join(words)
    drawn = RandomWords(WORDS, seed)(text)
    assert len(drawn.split()) == len(words) and set(drawn.split()) <= set(WORDS)
    assert drawn == RandomWords(WORDS, seed)(text)


def test_the_control_takes_the_place_of_both_kinds_of_reflections() -> None:
    failed = episode(0, False, *(step((0, 0, 0)) for _ in range(20)))
    (wanted,) = erl(words=30, reflection="random").attempts([TASK], [failed])
    assert len(wanted.knowledge.split()) == 30 and set(wanted.knowledge.split()) == set(WORDS)
    reflection = erl(words=None, reflection="random").reflection
    assert reflection is not None
    told = reflection.knowledge(ParsedAction("a b c d", "")).splitlines()
    assert told[0] == LEARNED and len(told[1].split()) == 4 and set(told[1].split()) <= set(WORDS)


def test_every_decision_of_a_second_success_that_knew_something_is_a_lesson() -> None:
    asked, acted, mute = step((1,)), step((2,), plain=(9,)), Step((), (), (), "", "", "", None, ())
    summed_up = replace(step((3,), plain=(9, 9)), kind="summary")
    won = replace(episode(0, True, acted, mute, acted), summaries=(Summary(0, asked), Summary(1, summed_up)))
    lost, ignorant = episode(1, False, acted), episode(2, True, step((2,)))
    assert erl().lessons([won, lost, ignorant]) == (acted, summed_up, acted)


def test_metrics_are_of_all_ranks() -> None:
    further = [episode(0, True, step((2,), plain=(9,))), episode(1, True), episode(2, False)]

    def twice(values: dict[str, float]) -> dict[str, float]:
        return {name: 2 * value for name, value in values.items()}

    assert erl().metrics(further, twice) == {
        "experience/attempts": 6, "experience/pairs": 2, "experience/success": pytest.approx(2 / 3),
    }  # fmt: skip
    assert erl().metrics([], twice) == {"experience/attempts": 0, "experience/pairs": 0}


def test_the_loss_is_both_terms_with_their_weights() -> None:
    """0.5 (0.1 x 1 + 0.3 x 2) + 2 (0.1 x 0.4 + 0.3 x 0.2) = 0.35 + 0.2."""
    tokens = LessonTokens(
        logprobs=torch.tensor([-1.0, -2.0]), kl=torch.tensor([0.4, 0.2]), weights=torch.tensor([0.1, 0.3])
    )
    both, one = (erl().parameters.model_copy(update={"kl": kl}) for kl in (2.0, 0.0))
    loss, metrics = both.loss(tokens)
    assert float(loss) == pytest.approx(0.55)
    assert {name: pytest.approx(float(value)) for name, value in metrics.items()} == {"nll": 0.7, "kl": 0.1}
    assert both.compares_distributions and not one.compares_distributions
    alone, metrics = one.loss(replace(tokens, kl=None))
    assert float(alone) == pytest.approx(0.35) and metrics.keys() == {"nll"}
