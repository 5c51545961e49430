"""verl-agent's parser for ALFWorld: errors in the format are marked, and the action is carried out anyway."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.engine import Sampling
from skillpress.core.interface import Info, why_invalid
from skillpress.core.parsed_action import FORMAT_REASONS, LET_THROUGH, ParsedAction
from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.countdown.environment import Countdown
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.evaluation.statistics.episodes import carried_out, episode_table, evaluation_steps
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, Window
from skillpress.rollouts.agents.parsing import lenient
from skillpress.rollouts.collection import Collector, SyncVectorEnv, requests
from tests.support.rollouts.rote import RoteEngine, decode, encode

broken = st.lists(
    st.one_of(
        st.sampled_from(["<think>", "</think>", "<action>", "</action>", "go east", " ", "\n", "门"]),
        st.text(),
    ),
    max_size=12,
).map("".join)


@given(response=broken)
def test_any_text_gives_one_line_and_what_was_wrong_with_the_format(response: str) -> None:
    parsed = lenient(response)
    assert parsed.action == parsed.action.strip() and parsed.action.isprintable()
    assert parsed.invalid is None or parsed.invalid in FORMAT_REASONS
    assert not parsed.action or parsed.invalid in {None} | LET_THROUGH


@given(response=broken)
def test_it_reads_as_verl_agents_projection_does(response: str) -> None:
    """verl-agent's rules in as few words as possible, based on the positions of the two tags."""
    text = response.lower()
    start, end = text.find("<action>"), text.find("</action>")
    if start < 0 or end < 0:
        expected, valid = text[-30:], False
    else:
        expected = text[start + 8 : end]
        chinese = any(0x4E00 <= ord(char) <= 0x9FFF for char in response)
        valid = "<think>" in response and "</think>" in response and not chinese
    parsed = lenient(response)
    assert parsed.action.split() == "".join(c if c.isprintable() else " " for c in expected).split()
    assert (parsed.invalid is None) == valid


@pytest.mark.parametrize(
    ("response", "action", "reason"),
    [
        ("<think>a</think><action> Go East </action>", "go east", None),
        ("<THINK>a</THINK><ACTION>look</ACTION>", "look", "missing_thought"),
        ("<action>look</action>", "look", "missing_thought"),
        ("</think><action>look</action><think>", "look", None),
        ("<think>a</think><action>look</action><action>go</action>", "look", None),
        ("<think>a</think><action>go <action>look</action>", "go <action>look", None),
        ("<think>a</think></action><action>look", "", None),
        ("<think>a</think><action></action>", "", None),
        ("<think>门</think><action>look</action>", "look", "chinese"),
        ("<think>a</think><action>op(+,\n1, 2)</action>", "op(+, 1, 2)", None),
        ("", "", "missing_action"),
        ("I take the Mug from the table", "i take the mug from the table", "missing_action"),
        (
            "<think>a</think> then I go to cabinet 12 and wait\n",
            "n i go to cabinet 12 and wait",
            "missing_action",
        ),
        ("<think>a</think><action>" + "x" * 1001 + "</action>", "", "too_long"),
    ],
)
def test_cases(response: str, action: str, reason: str | None) -> None:
    parsed = lenient(response)
    assert (parsed.action, parsed.invalid) == (action, reason)


def test_the_tail_is_thirty_characters_before_it_is_stripped() -> None:
    assert lenient("0123456789" * 5).action == "0123456789" * 3
    assert lenient("0123456789" * 5 + " \n").action == "23456789" + "0123456789" * 2


@pytest.mark.parametrize(
    "response",
    [
        "<think>" * 15_000,
        "<think></think>" + "<action>" * 12_000,
        "</action>" * 11_000,
        f"<think>{'hm ' * 33_000}</think><action>go</action>",
        "门" * 100_000,
    ],
)
@pytest.mark.timeout(5)
def test_a_response_of_100000_characters_is_read_in_linear_time(response: str) -> None:
    assert len(lenient(response).action) <= 30


def test_a_record_states_the_format_and_the_refusal() -> None:
    thoughtless, mute = ParsedAction("", "look", "missing_thought"), ParsedAction("", "", "missing_action")
    assert why_invalid(thoughtless, Info()) == "missing_thought"
    assert why_invalid(thoughtless, Info(invalid="not_admissible")) == "missing_thought+not_admissible"
    assert why_invalid(mute, Info(invalid="empty")) == "missing_action"
    assert why_invalid(ParsedAction("", "fly"), Info(invalid="not_admissible")) == "not_admissible"
    assert why_invalid(ParsedAction("", "look"), Info()) is None


def played(*answers: str) -> Trajectory:
    """Countdown, 9 from 4 and 5, played by a language agent that gives these answers."""
    environment = CountdownParameters(
        name="countdown", max_steps=5, min_numbers=2, max_numbers=2, min_target=1, max_target=999,
        min_solutions=1,
    )  # fmt: skip
    agent = LanguageAgent(
        prompter=Prompter(
            environment.rendering("text", 2),
            lambda texts: [*map(encode, texts)],
            100_000,
        ),
        parse=lenient,
        state_update=Window(2),
        reward=OutcomeReward(10.0, 0.01),
        decode=decode,
        engine=RoteEngine([*answers]),
        sampling=Sampling(),
    )
    task = Task("9=4,5", "train", 2, {"target": 9, "numbers": [4, 5]})
    collector = Collector(SyncVectorEnv(lambda: Countdown(environment)), agent, 1)
    (trajectory,) = collector.collect(requests([task], 1, 0, "test"))
    return trajectory


def test_agent_and_collector_send_a_malformed_action_to_the_environment_and_count_it_as_malformed() -> None:
    trajectory = played("<think>a</think>fly", "<action>fly</action>", "<action>op(+, 5, 4)</action>")
    assert trajectory.won and trajectory.actions[-1] == "op(+, 5, 4)"
    first, second, third = (step.invalid for step in trajectory.steps)
    assert str(first).startswith("missing_action+") and str(second).startswith("missing_thought+")
    assert third == "missing_thought"
    assert [step.reward for step in trajectory.steps] == [-0.01, -0.01, pytest.approx(9.99)]
    steps = evaluation_steps(rollout_frame([trajectory]))
    assert episode_table(steps)["malformed_steps"].to_list() == [3]
    (rows,) = steps.stretches()
    assert rows.filter(carried_out())["action"].to_list() == ["op(+, 5, 4)"]
