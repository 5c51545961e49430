"""f_agent with a store: what it writes, what the next prompt shows, and that it keeps episodes apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Task
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, decide
from skillpress.rollouts.agents.parsing import tagged
from skillpress.rollouts.agents.store.facts import REQUEST as HOW_TO_WRITE
from skillpress.rollouts.agents.store.facts import AsksForFacts
from skillpress.rollouts.agents.store.parameters import StoreParameters
from skillpress.rollouts.agents.store.update import REQUEST, stored
from tests.support.rollouts.rote import RoteEngine, Telling, decode, encode

TASK = Task("t", "none", 0, {})
ACT = "<think>on</think><action>go</action>"
SEEN = ["the red door: amber", "an empty room", "the blue door: cedar", "a lamp", "the red door asks"]


def section(shown: int = 1, length: int = 300, **more: Any) -> StoreParameters:
    return StoreParameters(shown=shown, length=length, **more)


def walk(update: Any, seen: Sequence[str], thoughts: Sequence[str] = ()) -> AgentState:
    """The state after these observations, in each of which the agent said ``go``."""
    state = AgentState(TASK, seen[0], Info())
    said = [*thoughts, *[""] * len(seen)]
    for thought, observation in zip(said, seen[1:], strict=False):
        state = update(state, thought, "go", observation, Info())
    return state


def test_the_notes_are_the_turns_nearest_to_the_observation_that_the_window_has_forgotten() -> None:
    state = walk(stored(2, section(), compact=False), SEEN)
    assert [turn.observation for turn in state.history] == ["the blue door: cedar", "a lamp"]
    assert state.notes == "Step 1: you saw 'the red door: amber' and did 'go'."
    assert walk(stored(0, section(2), compact=True), SEEN).notes == "\n".join(
        ["the red door: amber go", "the blue door: cedar go"]
    )


def test_entries_are_cut_to_their_length_in_characters_or_compact_words() -> None:
    long = ["one two three four", "four"]
    assert walk(stored(0, section(length=20), compact=False), long).notes == "Step 1: you saw 'one"
    assert walk(stored(0, section(length=3), compact=True), long).notes == "one two three"


def test_the_same_history_gives_the_same_notes_and_two_episodes_share_nothing() -> None:
    update = stored(0, section(9), compact=True)
    one, other = walk(update, SEEN), walk(update, ["a garden", "a tree", "the red door"])
    assert walk(update, SEEN) == one
    assert other.notes == "a garden go\na tree go"


def test_facts_of_the_thought_are_written_by_name_and_the_newest_counts() -> None:
    update = stored(0, section(9, writes=["facts"]), compact=False)
    said = ['<fact name="red door">amber</fact> on <fact name="lamp">off</fact>', "hm"]
    assert walk(update, SEEN[:4], said).notes == "red door: amber\nlamp: off"
    said.append('<fact name="lamp"> lit\nnow </fact><fact name="none"> </fact>')
    assert walk(update, SEEN[:4], said).notes == "red door: amber\nlamp: lit now"


@dataclass(frozen=True)
class Pad:
    notepad: dict[str, str]


def test_sections_of_the_notepad_are_facts_and_unchanged_ones_are_written_once() -> None:
    update, state = stored(0, section(9, writes=["facts"]), compact=False), AgentState(TASK, "O0", Info())
    for text in ("search", "search", "read"):
        state = update(state, "", "go", "O", Info(state=Pad({"plan": text, "drafts": ""})))
    assert state.notes == "plan: read" and len(state.kept.store) == 2  # type: ignore[attr-defined]


def test_summaries_become_entries_beside_the_turns_they_replace_in_the_prompt() -> None:
    engine = RoteEngine([ACT, ACT, "the red door opens with amber", ACT, ACT, "nothing", ACT])
    prompter = Prompter(Telling(), lambda texts: [*map(encode, texts)], 10_000)
    update = stored(2, section(writes=["summaries"]), compact=False)
    player = LanguageAgent(prompter, tagged, update, OutcomeReward(10.0, 0.01), decode, engine, Sampling())
    state, waiting = AgentState(TASK, SEEN[0], Info()), SEEN[1:]
    while waiting:
        (decision,) = decide(player, [state], [0])
        summing = decision.kind == "summary"
        state = player.update_state(state, decision, state.observation if summing else waiting.pop(0), Info())
    decide(player, [state], [0])
    asked = [prompt for prompt, _, _ in engine.asked]
    assert [prompt.endswith(f"\n{REQUEST}") for prompt in asked] == [0, 0, 1, 0, 0, 1]
    note = "[Summary after step 2: the red door opens with amber]"
    assert asked[3:5] == [f"{note} {SEEN[2]}", f"{note} {SEEN[2]}>go {SEEN[3]}"]


def test_an_invalid_summary_writes_nothing() -> None:
    update: Any = stored(2, section(writes=["turns", "summaries"]), compact=True)
    state = walk(update, SEEN[:3])
    after = update.summed_up(state, ParsedAction("", "", "empty"))
    assert after.history == () and after.kept.store == state.kept.store
    assert after.notes == "the red door: amber go", "turns that left the prompt can be found in the store"


def test_a_prompt_with_facts_says_how_to_write_them() -> None:
    asking = AsksForFacts(Telling())
    state = AgentState(TASK, "a door", Info())
    assert asking.prompt(state) == f"[] a door\n{HOW_TO_WRITE}" and '<fact name="' in HOW_TO_WRITE
    assert (asking.parser, asking.history, asking.continuation(state)) == ("tagged", 3, " now a door")
    assert asking.response("go", Info()) == "go"


@pytest.mark.parametrize("writes", [[], ["turns", "turns"], ["dreams"]])
def test_only_known_kinds_are_written_each_once(writes: list[str]) -> None:
    with pytest.raises(ValueError, match="writes"):
        section(writes=writes)
