"""The policy summarizes its own past: when it is asked, what it is asked, and what it continues from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.interface import AgentState, Info, SummarizingUpdate, Turn
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, decide
from skillpress.rollouts.agents.parsing import tagged
from skillpress.rollouts.agents.summarize import REQUEST, Summarize
from tests.support.rollouts.rote import RoteEngine, Telling, decode, encode

TASK = Task("t", "none", 0, {})
ACT = "<think>on</think><action>go</action>"


def agent(turns: int | None, *answers: str, budget: int = 10_000) -> tuple[LanguageAgent, RoteEngine]:
    engine = RoteEngine(list(answers))
    prompter = Prompter(Telling(), lambda texts: [*map(encode, texts)], budget)
    reward = OutcomeReward(10.0, 0.01)
    return LanguageAgent(prompter, tagged, Summarize(turns), reward, decode, engine, Sampling()), engine


def play(player: LanguageAgent, observations: Sequence[str]) -> list[AgentState]:
    """The states in which the agent acted; each observation follows an action."""
    state, acted, waiting = AgentState(TASK, "O0", Info()), [], list(observations)
    while waiting:
        (decision,) = decide(player, [state], [0])
        if decision.kind == "summary":
            state = player.update_state(state, decision, state.observation, state.info)
            continue
        acted.append(state)
        state = player.update_state(state, decision, waiting.pop(0), Info())
    return acted


def test_it_is_asked_for_a_summary_whenever_there_are_so_many_turns_and_never_twice_in_a_row() -> None:
    player, engine = agent(2, ACT, ACT, "first notes", ACT, ACT, "second notes", ACT)
    states = play(player, ["O1", "O2", "O3", "O4", "O5"])
    asked = [prompt for prompt, _, _ in engine.asked]
    assert [prompt.endswith(f"\n{REQUEST}") for prompt in asked] == [0, 0, 1, 0, 0, 1, 0]
    assert asked[2] == f"[] O0>go O1>go O2\n{REQUEST}"
    assert asked[3] == "[first notes] O2" and asked[4] == "[first notes] O2>go O3"
    assert asked[5] == f"[first notes] O2>go O3>go O4\n{REQUEST}" and asked[6] == "[second notes] O4"
    assert [state.observation for state in states] == ["O0", "O1", "O2", "O3", "O4"]
    known = [state.tokens_left is not None for state in states]
    assert known == [False, True, False, True, False], "a summary makes room that nobody has counted yet"


def test_it_is_asked_for_a_summary_when_its_prompt_is_nearly_full_while_it_still_shows_all_turns() -> None:
    player, engine = agent(None, ACT, ACT, ACT, "notes", ACT, budget=2000)
    long, longer = "x" * 600, "y" * 700
    play(player, [long, longer, "z" * 200, "end"])
    prompts = [prompt for prompt, _, _ in engine.asked]
    assert [prompt.endswith(f"\n{REQUEST}") for prompt in prompts] == [False, False, False, True, False]
    whole = f"[] O0>go {long}>go {longer}>go {'z' * 200}"
    assert len(whole) > 1500 and prompts[3] == f"{whole}\n{REQUEST}" and len(prompts[3]) <= 2000
    assert prompts[4] == f"[notes] {'z' * 200}"


def test_a_state_without_turns_is_acted_in_even_if_nothing_fits() -> None:
    player, _ = agent(1)
    (decision,) = decide(player, [AgentState(TASK, "x" * 20_000, Info())], [0])
    assert decision.kind == "action" and decision.parsed.invalid == "prompt_too_long"


def test_a_summary_that_cannot_be_asked_for_takes_the_turns_away_all_the_same() -> None:
    player, engine = agent(1, budget=20)
    state = AgentState(TASK, "now", Info(), (Turn("before", "", "go"),), notes="kept")
    (decision,) = decide(player, [state], [0])
    assert decision.kind == "summary" and decision.parsed.invalid == "prompt_too_long" and not engine.asked
    after = player.update_state(state, decision, "now", Info())
    assert (after.history, after.notes, after.tokens_left) == ((), "kept", None)


def test_summaries_and_actions_are_decided_together_in_the_order_asked() -> None:
    player, _ = agent(1, "notes", ACT, ACT, "more notes")
    full, fresh = AgentState(TASK, "now", Info(), (Turn("a", "", "b"),)), AgentState(TASK, "now", Info())
    decisions = decide(player, [full, fresh, fresh, full], [0, 1, 2, 3])
    assert [each.kind for each in decisions] == ["summary", "action", "action", "summary"]
    assert [each.parsed.thought for each in decisions] == ["notes", "on", "on", "more notes"]
    assert all(decode(each.response_ids) for each in decisions)


@pytest.mark.parametrize(
    ("response", "notes", "reason"),
    [
        (" two rooms\nare empty \n", "two rooms\nare empty", None),
        ("<think>what was there?</think>\n a key", "a key", None),
        ("", "", "empty"),
        ("<think>all of it</think> ", "", "empty"),
        ("<think>cut off", "", "unclosed"),
    ],
)
def test_a_summary_is_what_stands_behind_the_thought(response: str, notes: str, reason: str | None) -> None:
    assert Summarize(1).read(response) == ParsedAction(notes, "", reason)


def test_without_a_summary_the_notes_stay_and_the_turns_go() -> None:
    state = AgentState(TASK, "now", Info(), (Turn("a", "", "b"),), notes="before")
    kept = Summarize(1).summed_up(state, ParsedAction("", "", "empty"))
    assert (kept.notes, kept.history) == ("before", ())
    assert Summarize(1).summed_up(state, ParsedAction("new", "")) == replace(state, notes="new", history=())


def test_a_summary_is_judged_as_a_step_to_which_nothing_was_answered() -> None:
    player, _ = agent(1)
    state = AgentState(TASK, "now", Info(won=True))
    for parsed, invalid in ((ParsedAction("notes", ""), 0.0), (ParsedAction("", "", "empty"), -0.01)):
        assert player.evaluate_step(state, parsed, "", Info()) == (
            RewardPart("success", 0.0, "trajectory"),
            RewardPart("invalid", invalid, "trajectory"),
        )


def test_it_is_a_state_update_that_agents_know_by_its_form() -> None:
    assert isinstance(Summarize(3), SummarizingUpdate)
