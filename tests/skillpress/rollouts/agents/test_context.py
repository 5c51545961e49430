"""The prompt's budget: long outputs are shortened first, then the oldest turns are dropped; the current
observation is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.interface import AgentState, Decision, Info, Turn
from skillpress.core.parsed_action import FORMAT_REASONS, ParsedAction
from skillpress.core.trajectory import Task, TokenIds
from skillpress.rollouts.agents import Concatenate, Prompter
from skillpress.rollouts.agents.context import LONGEST_PAST, shortened

TASK = Task("t", "none", 0, {})


@dataclass(frozen=True)
class Telling:
    """Shows the whole history, then the observation; each word is one token."""

    parser: str = "plain"
    history: int | None = None

    def prompt(self, state: AgentState) -> str:
        return " ".join([*(f"{turn.observation} {turn.action}" for turn in state.history), state.observation])

    def continuation(self, state: AgentState) -> str:
        return state.observation

    def response(self, action: str, info: Info) -> str:
        return action


def encode(texts: Sequence[str]) -> list[TokenIds]:
    return [tuple(int(word) for word in text.split()) for text in texts]


def state(turns: Sequence[int], seen: int) -> AgentState:
    """Turn i consists of ``turns[i]`` words ``i`` and the action 100; the current observation is ``seen``
    words 99."""
    history = tuple(Turn(" ".join([str(i)] * words), "", "100") for i, words in enumerate(turns))
    return AgentState(TASK, " ".join(["99"] * seen), Info(), history)


@given(
    st.lists(st.integers(0, 5), max_size=8), st.integers(1, 5), st.integers(1, 30)
)  # longest prompt: 8 * 6 + 5
def test_as_many_of_the_newest_turns_as_fit_are_shown_whole(turns: list[int], seen: int, budget: int) -> None:
    (prompt,) = Prompter(Telling(), encode, budget)([state(turns, seen)])
    fitting = [
        kept
        for kept in range(len(turns) + 1)
        if sum(words + 1 for words in turns[len(turns) - kept :]) + seen <= budget
    ]
    if not fitting:
        assert prompt is None
        return
    first = len(turns) - max(fitting)
    expected = [n for i in range(first, len(turns)) for n in [*[i] * turns[i], 100]] + [99] * seen
    assert prompt is not None and list(prompt) == expected


def test_states_are_shortened_one_by_one() -> None:
    prompts = Prompter(Telling(), encode, 5)([state([1], 2), state([3, 2], 2), state([], 6), state([], 5)])
    assert prompts == [(0, 100, 99, 99), (1, 1, 100, 99, 99), None, (99,) * 5]


def words(text: str) -> int:
    return len(text.split())


def outputs(*lengths: int) -> AgentState:
    """A turn for each length, whose output has that many words; the current observation is 1 word."""
    history = tuple(Turn(" ".join(["out"] * length), "", "act") for length in lengths)
    return AgentState(TASK, "now", Info(), history)


def by_words(texts: Sequence[str]) -> list[TokenIds]:
    """One token per word."""
    return [(0,) * words(text) for text in texts]


def test_long_outputs_of_the_oldest_turns_are_cut_before_any_turn_is_left_out() -> None:
    state = outputs(2000, 2000, 10)
    whole = words(Telling().prompt(state))
    short = words(shortened(state.history[0].observation, LONGEST_PAST))
    assert short < 300

    def length(budget: int) -> int:
        (prompt,) = Prompter(Telling(), by_words, budget)([state])
        assert prompt is not None
        return len(prompt)

    assert length(whole) == whole
    one_cut, both_cut = whole - 2000 + short, whole - 2 * (2000 - short)
    assert length(whole - 1) == one_cut
    assert length(one_cut - 1) == both_cut
    assert length(both_cut - 1) == both_cut - short - 1  # the oldest turn is dropped, including its action


def test_long_actions_are_cut_as_outputs_are() -> None:
    state = AgentState(TASK, "now", Info(), (Turn("seen", "", "act " * 2000),))
    (prompt,) = Prompter(Telling(), by_words, 1000)([state])
    assert prompt is not None and 0 < len(prompt) - 2 < 300


def test_what_is_seen_now_is_never_cut() -> None:
    state = AgentState(TASK, "out " * 2000, Info(), outputs(5).history)
    assert Prompter(Telling(), by_words, 2000)([state]) == [(0,) * 2000]
    assert Prompter(Telling(), by_words, 1999)([state]) == [None]


def test_the_agent_says_what_its_last_prompt_and_response_left_of_the_budget() -> None:
    from tests.support.rollouts.rote import agent

    player, _ = agent()  # its prompts have at most 1000 tokens
    taken = Decision((1,) * 600, (2,) * 150, (-0.5,) * 150, ParsedAction("", "go"))
    beyond = Decision((1,) * 600, (2,) * 500, (-0.5,) * 500, ParsedAction("", "go"))
    mute = Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
    assert state([], 1).tokens_left is None
    left = [
        player.update_state(state([], 1), each, "98", Info()).tokens_left for each in (taken, beyond, mute)
    ]
    assert left == [250, 0, None]


def extend(contexts: Sequence[TokenIds], texts: Sequence[str]) -> list[TokenIds]:
    """7 is the separator between a response and the following text."""
    return [(*context, 7, *ids) for context, ids in zip(contexts, encode(texts), strict=True)]


def test_a_state_with_a_context_is_gone_on_from_token_by_token_while_it_fits() -> None:
    prompter = Prompter(Telling(), encode, 6, extend)
    grown = replace(state([1, 2], 2), context=(5, 6, 100))
    outgrown = replace(state([1, 2], 2), context=(5, 6, 8, 100))
    assert prompter([grown, outgrown, state([1], 2)]) == [
        (5, 6, 100, 7, 99, 99),
        (1, 1, 100, 99, 99),  # rebuilt, with the newest turns that fit
        (0, 100, 99, 99),
    ]
    assert Prompter(Telling(), encode, 6)([grown]) == [(1, 1, 100, 99, 99)]


def test_the_agent_hands_on_the_tokens_of_its_decision_where_prompts_grow() -> None:
    from tests.support.rollouts.rote import agent

    player, _ = agent()
    decision = Decision((1, 2), (3,), (-0.5,), ParsedAction("", "go"))
    mute = Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
    assert player.update_state(state([], 1), decision, "98", Info()).context is None
    player.state_update = Concatenate(1)
    assert player.update_state(state([], 1), decision, "98", Info()).context == (1, 2, 3)
    assert player.update_state(state([], 1), mute, "98", Info()).context is None


def test_an_agent_without_a_prompt_takes_a_step_without_an_action() -> None:
    from skillpress.core.engine import Sampling
    from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Window, decide
    from skillpress.rollouts.agents.parsing import plain
    from tests.support.rollouts.rote import RoteEngine

    engine = RoteEngine(["go", "stay"])
    agent = LanguageAgent(
        Prompter(Telling(), encode, 5), plain, Window(2), OutcomeReward(10, 0.01),
        lambda ids: bytes(ids).decode(), engine, Sampling(),
    )  # fmt: skip
    first, mute, last = decide(agent, [state([], 3), state([], 6), state([], 4)], [7, 8, 9])
    assert [first.parsed.action, last.parsed.action] == ["go", "stay"]
    assert (mute.prompt_ids, mute.response_ids, len(mute.logprobs), mute.parsed.action) == ((), (), 0, "")
    assert mute.parsed.invalid == "prompt_too_long" and mute.parsed.invalid in FORMAT_REASONS
    assert [seed for _, _, seed in engine.asked] == [7, 9]
    reward = agent.evaluate_step(state([], 6), mute.parsed, "", Info())
    assert [part.value for part in reward if part.name == "invalid"] == [-0.01]
