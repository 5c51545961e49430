"""The prompt's budget: the oldest turns go first, what is seen now never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from skillpress.agents import Prompter
from skillpress.interface import FORMAT_REASONS, AgentState, Info, TokenIds, Turn
from skillpress.trajectory import Task

TASK = Task("t", "none", 0, {})


@dataclass(frozen=True)
class Telling:
    """The whole history, then the observation; one word is one token."""

    parser: str = "plain"
    history: int | None = None

    def prompt(self, state: AgentState) -> str:
        return " ".join([*(f"{turn.observation} {turn.action}" for turn in state.history), state.observation])

    def response(self, action: str, info: Info) -> str:
        return action


def encode(texts: Sequence[str]) -> list[TokenIds]:
    return [tuple(int(word) for word in text.split()) for text in texts]


def state(turns: Sequence[int], seen: int) -> AgentState:
    """Turn i has ``turns[i]`` words ``i`` and the action 100; ``seen`` words 99 are seen now."""
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


def test_an_agent_without_a_prompt_takes_a_step_without_an_action() -> None:
    from test_language_agent import RoteEngine

    from skillpress.agents import LanguageAgent, OutcomeReward, Window, decide
    from skillpress.agents.parsing import plain
    from skillpress.interface import Sampling

    engine = RoteEngine(["go", "stay"])
    agent = LanguageAgent(
        Prompter(Telling(), encode, 5), plain, Window(2), OutcomeReward(10, 0.01),
        lambda ids: bytes(ids).decode(), engine, Sampling(),
    )  # fmt: skip
    first, mute, last = decide(agent, [state([], 3), state([], 6), state([], 4)], [7, 8, 9])
    assert [first.parsed.action, last.parsed.action] == ["go", "stay"]
    assert (mute.prompt_ids, mute.response_ids, mute.logprobs, mute.parsed.action) == ((), (), (), "")
    assert mute.parsed.invalid == "prompt_too_long" and mute.parsed.invalid in FORMAT_REASONS
    assert [seed for _, _, seed in engine.asked] == [7, 9]
    reward = agent.evaluate_step(state([], 6), mute.parsed, "", Info())
    assert [part.value for part in reward if part.name == "invalid"] == [-0.01]
