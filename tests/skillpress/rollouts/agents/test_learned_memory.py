"""A memory that the policy writes itself: the next prompt contains what was written."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction, Parser
from skillpress.core.trajectory import Task
from skillpress.rollouts.agents.learned_memory import (
    Learned,
    Memory,
    MemoryText,
    MemoryWords,
    Remembering,
    in_front,
)
from skillpress.rollouts.agents.parsing import tagged
from skillpress.training.imitation.demonstrations import demonstrate
from tests.support.environments.small_games import COUNTDOWN as SECTION

TASKS = [
    Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]}),
    Task("easy", "countdown", 0, {"target": 24, "numbers": [2, 3, 4]}),
]
ACTIONS = st.sampled_from(["+01", "-12", "*02", "/23", "rollback", "reset"])
words = st.lists(st.sampled_from(["m0", "m1", "m2", "m3"]), max_size=6)


@given(words, ACTIONS)
def test_memory_words_in_front_of_an_action_are_its_thought(written: list[str], action: str) -> None:
    said = in_front(" ".join([*written, action]))
    assert said == ParsedAction(" ".join(written), action)


def test_words_that_are_no_memory_belong_to_the_action() -> None:
    assert in_front("m1 take m2").action == "take m2"
    assert in_front("m1 m2") == ParsedAction("m1 m2", "", "empty")
    assert in_front("") == ParsedAction("", "", "empty")


@given(words, words)
def test_the_newest_words_are_kept_and_always_as_many(first: list[str], second: list[str]) -> None:
    memory = MemoryWords(length=2, alphabet=4)
    kept = memory.following(" ".join(first), "")
    assert kept.split() == ["m0", "m0", *first][-2:]
    assert memory.following(" ".join(second), kept).split() == [*kept.split(), *second][-2:]


def test_a_text_memory_is_what_the_last_one_in_the_thought_says_cut_to_its_length() -> None:
    memory = MemoryText(length=12)
    thought = "hm <memory>a</memory> <memory>the key\nis upstairs</memory>"
    said = tagged(f"<think>{thought}</think><action>go</action>")
    assert said.action == "go" and memory.following(said.thought, "old") == "the key is u"
    for broken in ("nothing", "<memory>open", "closed</memory>", ""):
        assert memory.following(broken, "old") == "old"
    assert memory.following("<memory> </memory>", "old") == "", "a policy may forget"


@pytest.mark.parametrize(
    ("memory", "rendering", "parse"),
    [(MemoryWords(3, 5), "compact", in_front), (MemoryText(40), "text", tagged)],
)
def test_a_demonstration_reads_in_each_prompt_what_it_wrote_in_the_answer_before(
    memory: Memory, rendering: str, parse: Parser
) -> None:
    plain = SECTION.rendering(rendering, 0)
    update = Learned(0, memory)
    shown = list(demonstrate(TASKS, 6, SECTION, Remembering(plain, memory), update, 0.4, 3))
    bare = list(demonstrate(TASKS, 6, SECTION, plain, update, 0.4, 3))
    assert max(map(len, shown)) > 3
    for steps, without in zip(shown, bare, strict=True):
        kept = ""
        for step, same in zip(steps, without, strict=True):
            assert step.state.notes == kept
            said = parse(step.response)
            assert said.invalid is None
            own = plain.parser == "plain"
            assert said.action == (same.response if own else tagged(same.response).action)
            kept = memory.following(said.thought, kept)
            assert kept, "something is remembered of every step"


def test_demonstrated_words_are_the_codes_of_the_last_actions_the_newest_first() -> None:
    memory, kept = MemoryWords(length=3, alphabet=7), ""
    for action in ("+01", "-02", "*01", "reset"):
        kept = memory.written(action, kept)
    assert kept.split() == [f"m{crc32(action.encode()) % 7}" for action in ("reset", "*01", "-02")]


def test_demonstrated_text_names_the_last_actions_that_fit() -> None:
    memory, kept = MemoryText(length=14), ""
    for action in ("go north", "take key", "open"):
        kept = memory.written(action, kept)
    assert kept == "take key; open"
    assert memory.written("a very long action indeed", kept) == "a very long ac"


def test_prompts_show_what_is_kept() -> None:
    def state(notes: str) -> AgentState:
        environment = SECTION.make()
        observation, info = environment.reset(TASKS[1])
        return AgentState(task=TASKS[1], observation=observation, info=info, notes=notes)

    compact = Remembering(SECTION.rendering("compact", 0), MemoryWords(2, 4))
    assert compact.prompt(state("")) == "24 2 3 4 _ m0 m0" and compact.parser == "memory"
    assert compact.prompt(state("m3 m1")).endswith(" m3 m1")
    text = Remembering(SECTION.rendering("text", 0), MemoryText(30))
    assert "What you noted so far:\nfour is left\n" in text.prompt(state("four is left"))
    assert "in 30 characters at most" in text.prompt(state("")) and text.parser == "tagged"
    info = Info(action="op(+, 3, 2)")
    assert text.response("+01", info) == (
        "<think>I take the next step of a solution. <memory>op(+, 3, 2)</memory></think>"
        "<action>op(+, 3, 2)</action>"
    )
