"""The agent's loop with an engine that answers by rote: state, prompt, response, action, state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task, TokenIds, WeightSpan
from skillpress.models.engines.batch import BatchEngine
from skillpress.play.agents import LanguageAgent, OutcomeReward, Prompter, RandomExplorer, Window, decide
from skillpress.play.agents.parsing import tagged

TASK = Task("t", "none", 0, {})


def encode(text: str) -> TokenIds:
    return tuple(text.encode())


def decode(ids: TokenIds) -> str:
    return bytes(ids).decode()


@dataclass
class RoteEngine(BatchEngine):
    """Answers from a list, and remembers what it was asked."""

    answers: list[str]
    asked: list[tuple[str, Sampling, int]] = field(default_factory=list)
    promises = Promises(exact_seeds=False, exact_logprobs=False, lockstep=True)

    def __post_init__(self) -> None:
        super().__init__()
        self.version = 7

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        self.asked += [(decode(p), sampling, seed) for p, seed in zip(prompts, seeds, strict=True)]
        ids = [encode(self.answers.pop(0)) for _ in prompts]
        return [Completion(i, (0.0,) * len(i), "stop") for i in ids]

    def update_weights(self, weights: StateDict, version: int) -> None:
        raise AssertionError("nobody trains here")


@dataclass(frozen=True)
class Recounting:
    """Shows the history's actions and the observation."""

    parser: str = "tagged"
    history: int | None = 1

    def prompt(self, state: AgentState) -> str:
        return " ".join([*(turn.action for turn in state.history), state.observation])

    def response(self, action: str, info: Info) -> str:
        return action


def agent(*answers: str) -> tuple[LanguageAgent, RoteEngine]:
    engine = RoteEngine(list(answers))
    reward = OutcomeReward(success=10.0, invalid_penalty=0.01)
    sampling = Sampling(temperature=0.4)
    prompter = Prompter(Recounting(), lambda texts: [*map(encode, texts)], budget=1000)
    return LanguageAgent(prompter, tagged, Window(1), reward, decode, engine, sampling), engine


START = AgentState(TASK, "a cliff", Info())


def test_it_acts_on_its_state_and_each_step_sees_its_own_prompt() -> None:
    player, engine = agent(
        "<think>see</think><action>look</action>", "<think>go</think><action>jump</action>"
    )
    assert player.act(START, seed=3) == ("see", "look")
    decision = Decision((), (), (), ParsedAction("see", "look"))
    state = player.update_state(START, decision, "a net below", Info(action="look"))
    assert player.act(state, seed=4) == ("go", "jump")
    assert engine.asked == [
        ("a cliff", Sampling(temperature=0.4), 3),
        ("look a net below", Sampling(temperature=0.4), 4),
    ]


def test_a_decision_keeps_the_tokens_that_were_seen_and_sampled() -> None:
    answer = "<think>see</think><action>look</action>"
    player, _ = agent(answer, answer)
    first, second = decide(player, [START, START], [0, 1])
    assert first == second
    assert decode(first.prompt_ids) == "a cliff" and decode(first.response_ids) == answer
    assert len(first.logprobs) == len(first.response_ids)
    assert first.parsed == ParsedAction("see", "look")
    assert first.weight_spans == (WeightSpan(7, 0, len(answer)),)


def test_what_was_asked_before_an_abort_is_never_answered() -> None:
    player, engine = agent("<action>look</action>")
    player.submit([DecisionRequest(1, START, 0), DecisionRequest(2, AgentState(TASK, "x" * 2000, Info()), 0)])
    player.abort()
    assert player.completed(0.0) == [] and engine.asked == []
    player.submit([DecisionRequest(1, START, 5)])
    ((key, _),) = player.completed(0.0)
    assert key == 1 and [seed for *_, seed in engine.asked] == [5]


def test_a_prompt_that_does_not_fit_is_answered_while_the_engine_is_still_at_work() -> None:
    player, engine = agent("<action>look</action>")
    engine.completed = lambda wait: []  # type: ignore[method-assign]
    player.submit([DecisionRequest(1, START, 0), DecisionRequest(2, AgentState(TASK, "x" * 2000, Info()), 0)])
    ((key, decision),) = player.completed(60.0)
    assert (key, decision.parsed.invalid, decision.weight_spans) == (2, "prompt_too_long", ())
    assert player.completed(0.0) == []


def test_a_response_without_an_action_is_an_empty_action() -> None:
    player, _ = agent("I would rather not")
    assert player.act(START) == ("", "")


def test_it_judges_its_own_step_from_the_environments_facts() -> None:
    player, _ = agent()
    jump, mumble = ParsedAction("", "jump"), ParsedAction("", "", "missing_action")
    for parsed, info, success, invalid in (
        (jump, Info(won=True), 10.0, 0.0),
        (jump, Info(invalid="unreadable"), 0.0, -0.01),
        (mumble, Info(), 0.0, -0.01),
    ):
        assert player.evaluate_step(START, parsed, "what?", info) == (
            RewardPart("success", success, "trajectory"),
            RewardPart("invalid", invalid, "trajectory"),
        )


def test_the_random_explorer_is_uniform_and_decided_by_its_seed() -> None:
    explorer = RandomExplorer(lambda info: info.admissible, OutcomeReward(10.0, 0.01))
    state = AgentState(TASK, "", Info(admissible=("a", "b", "c")))
    drawn = [decision.parsed.action for decision in decide(explorer, [state] * 3000, range(3000))]
    again = decide(explorer, [state] * 10, range(10))
    assert [decision.parsed.action for decision in again] == drawn[:10]
    for action in "abc":
        assert drawn.count(action) == pytest.approx(1000, abs=4 * (3000 * 2 / 9) ** 0.5)
