"""r = R · [won] - penalty · [invalid]: the agent computes the reward; the environment only states facts."""

from __future__ import annotations

import pytest

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task
from skillpress.rollouts.agents.reward import OutcomeReward, WeightedMeasure

START = AgentState(Task("t", "x", 0, {}), "a cliff", Info())
JUMP, MUMBLE = ParsedAction("", "jump"), ParsedAction("", "", "missing_action")


def judge(reward: OutcomeReward, parsed: ParsedAction, info: Info) -> dict[str, float]:
    return {part.name: part.value for part in reward(START, parsed, "a net", info)}


@pytest.mark.parametrize(
    ("info", "parsed", "success", "invalid"),
    [
        (Info(won=True), JUMP, 10.0, 0.0),
        (Info(), JUMP, 0.0, 0.0),
        (Info(lost="stuck"), JUMP, 0.0, 0.0),
        (Info(invalid="negative"), JUMP, 0.0, -0.01),
        (Info(), MUMBLE, 0.0, -0.01),
        (Info(lost="stuck", invalid="unreadable"), JUMP, 0.0, -0.01),
    ],
)
def test_success_is_rewarded_once_and_every_invalid_action_costs(
    info: Info, parsed: ParsedAction, success: float, invalid: float
) -> None:
    reward = OutcomeReward(success=10.0, invalid_penalty=0.01)
    assert judge(reward, parsed, info) == {"success": success, "invalid": invalid}


def test_where_the_format_alone_counts_a_refused_action_costs_nothing() -> None:
    reward = OutcomeReward(success=10.0, invalid_penalty=0.1, invalid_counts="format")
    assert judge(reward, MUMBLE, Info())["invalid"] == -0.1
    assert judge(reward, JUMP, Info(invalid="not_admissible"))["invalid"] == 0
    carried_out_all_the_same = ParsedAction("", "jump", "missing_thought")
    assert judge(reward, carried_out_all_the_same, Info())["invalid"] == -0.1


def test_each_part_says_what_it_counts_for() -> None:
    reward = OutcomeReward(success=10.0, invalid_penalty=0.1, invalid_credit="step")
    assert reward(START, MUMBLE, "", Info()) == (
        RewardPart("success", 0.0, "trajectory"),
        RewardPart("invalid", -0.1, "step"),
    )


def test_what_the_environment_measures_is_weighed_as_a_part_of_its_own() -> None:
    weights = {
        "exact_match": WeightedMeasure(weight=0.9, credit="trajectory"),
        "executed": WeightedMeasure(weight=0.1, credit="step"),
        "format": WeightedMeasure(weight=0.05, credit="step"),
    }
    reward = OutcomeReward(success=1.0, invalid_penalty=0.0, measures=weights)
    assert reward(START, JUMP, "", Info(measures={"executed": 1.0, "length": 7.0}))[2:] == (
        RewardPart("exact_match", 0.0, "trajectory"),
        RewardPart("executed", 0.1, "step"),
        RewardPart("format", 0.05, "step"),
    )
    assert judge(reward, MUMBLE, Info(measures={"exact_match": 1.0})) == {
        "success": 0.0, "invalid": 0.0, "exact_match": 0.9, "executed": 0.0, "format": 0.0
    }  # fmt: skip
