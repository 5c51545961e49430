"""How a run of another's format ended is found where the format keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.integrations import foreign_records as foreign
from tests.support.integrations.foreign_records import read

OUTCOMES = {
    "SWE-agent": (foreign.swe_agent, "", None, None),
    "SWE-agent, judged": (lambda: foreign.swe_agent(target=True), "target", True, 1.0),
    "mini-swe-agent": (foreign.mini_swe_agent, "", None, None),
    "OpenHands": (foreign.openhands_evaluation, "test_result.report.resolved", True, 1.0),
    "tau-bench": (foreign.tau_bench, "reward", True, 1.0),
    "tau2-bench": (foreign.tau2_bench, "reward_info.reward", False, 0.0),
    "verifiers": (foreign.verifiers, "reward", None, 0.4),
    "verifiers' graph": (foreign.verifiers_graph, "rewards", True, 1.0),
    "NeMo-Gym": (foreign.nemo_gym, "reward", True, 1.0),
    "inspect": (foreign.inspect_sample, "", None, None),
    "row": (foreign.row, "resolved", True, 1.0),
    "Langfuse": (foreign.langfuse, "scores.solved", True, 1.0),
    "messages": (lambda: {"messages": foreign.openai_messages()}, "", None, None),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_outcome_is_found_where_the_format_keeps_it(name: str) -> None:
    make, field, success, score = OUTCOMES[name]
    found = read(make())
    assert (found.outcome, found.success, found.score) == (field, success, score)


@pytest.mark.parametrize(
    ("reward", "success", "score"),
    [
        (1, True, 1.0),
        (0.0, False, 0.0),
        (True, True, 1.0),
        (0.5, None, 0.5),
        (float("nan"), None, None),
        ("1.0", True, 1.0),
        ("passed", True, None),
        (None, None, None),
        ([1], None, None),
        (10**400, None, None),
        ({"reward": 1}, True, 1.0),
        ({"a": 1, "b": 0}, None, None),
    ],
)
def test_a_reward_decides_only_if_it_says_yes_or_no(
    reward: Any, success: bool | None, score: float | None
) -> None:
    found = read({"messages": foreign.openai_messages(), "reward": reward})
    assert (found.success, found.score) == (success, score)
    assert found.outcome.startswith("reward") is (success is not None or score is not None)


@pytest.mark.parametrize(
    ("letter", "success", "score"), [("C", True, 1.0), ("I", False, 0.0), ("P", None, 0.5), ("N", False, 0.0)]
)
def test_inspects_letters_are_outcomes(letter: str, success: bool | None, score: float) -> None:
    sample = {**foreign.inspect_sample(), "scores": {"match": {"value": letter}}}
    assert (read(sample).success, read(sample).score) == (success, score)
