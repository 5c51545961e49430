"""The agent's loop with an engine that gives fixed answers: state, prompt, response, action, state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skillpress.core.engine import Completion, Sampling
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task, WeightSpan
from skillpress.environments.search.actions import search
from skillpress.rollouts.agents import OutcomeReward, RandomExplorer, decide
from skillpress.rollouts.agents.engine_agent import EngineAnswerError
from skillpress.rollouts.agents.state_updates import Concatenate
from tests.support.rollouts.rote import agent, decode

TASK = Task("t", "none", 0, {})


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


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_log_probability_that_is_not_finite_is_an_error_that_names_the_engine(value: float) -> None:
    player, engine = agent("<action>look</action>")
    completed = engine.completed

    def diverged(wait: float) -> list[tuple[int, Completion]]:
        return [
            (key, replace(found, logprobs=np.full(len(found.token_ids), value, np.float32)))
            for key, found in completed(wait)
        ]

    engine.completed = diverged  # type: ignore[method-assign]
    with pytest.raises(
        EngineAnswerError, match=r"rote:\w+ gives token 1 of .* log-probability (nan|-inf).*finite"
    ):
        player.act(START)


def test_a_response_longer_than_was_asked_for_is_an_error_that_names_the_engine() -> None:
    player, _ = agent("<action>look</action>")
    player.sampling = Sampling(max_new_tokens=3)
    with pytest.raises(
        EngineAnswerError, match=r"rote:\w+ gives a response of \d+ tokens.*max_new_tokens \(3\)"
    ):
        player.act(START)


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


def test_what_follows_the_end_that_a_parser_finds_is_no_part_of_the_decision() -> None:
    player, _ = agent("<search>a</search> and a page", "<search>a</search>")
    player.parse, player.state_update = search, Concatenate(1)
    first, second = decide(player, [START, START], [0, 1])
    assert first == second and first.parsed.action == "<search>a</search>"
    assert decode(first.response_ids) == "<search>a</search>"
    assert len(first.logprobs) == len(first.response_ids) == first.weight_spans[-1].end
    following = player.update_state(START, first, "a page", Info())
    assert following.context is not None and decode(following.context) == "a cliff<search>a</search>"
