"""Parsers are total: every text yields an action, or says why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.parsed_action import FORMAT_REASONS, ParsedAction
from skillpress.rollouts.agents.parsing import plain, tagged

STRICT = {"plain": plain, "tagged": tagged}

broken = st.lists(
    st.one_of(
        st.sampled_from(["<think>", "</think>", "<action>", "</action>", "reset", " ", "\n"]), st.text()
    ),
    max_size=12,
).map("".join)


@pytest.mark.parametrize("name", STRICT)
@given(response=broken)
def test_any_text_gives_a_printable_action_or_a_reason_never_both(name: str, response: str) -> None:
    parsed = STRICT[name](response)
    assert (parsed.action == "") == (parsed.invalid is not None)
    assert parsed.invalid is None or parsed.invalid in FORMAT_REASONS
    assert parsed.action == parsed.action.strip()
    assert parsed.action.isprintable()


def test_plain_takes_the_whole_response() -> None:
    assert plain(" op(+, 80, 28)\n") == ParsedAction("", "op(+, 80, 28)")
    assert plain("  ").invalid == "empty"
    assert plain("re\x00set").invalid == "unprintable"


def test_tagged_reads_thought_and_action() -> None:
    response = "Sure. <think> 80 - 28 = 52\n</think>\n<action> op(-, 80, 28) </action> done"
    assert tagged(response) == ParsedAction("80 - 28 = 52", "op(-, 80, 28)")


def test_an_action_that_is_only_thought_of_is_not_taken() -> None:
    response = "<think>maybe <action>reset</action>?</think><action>rollback</action>"
    assert tagged(response).action == "rollback"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "missing_thought"),
        ("<action>reset</action>", "missing_thought"),
        ("<think>a<action>reset</action>", "missing_thought"),
        ("<action>reset</action><think>late</think>", "missing_action"),
        ("<think>a</think>", "missing_action"),
        ("<think>a</think><action>reset", "missing_action"),
        ("<think>a</think><action>reset</action><action>rollback</action>", "two_actions"),
        ("<think>a</think><action> \n</action>", "empty"),
        ("<think>a</think><action>reset</action><action>", None),
        ("<think>a</think><action>reset</action><action></action>", "two_actions"),
        ("<think>a</think><action>op(+,\n1, 2)</action>", "unprintable"),
    ],
)
def test_tagged_says_what_is_wrong(response: str, reason: str | None) -> None:
    assert tagged(response).invalid == reason


def test_the_thought_is_kept_when_the_action_is_missing() -> None:
    assert tagged("<think>hm</think>").thought == "hm"


@pytest.mark.parametrize(
    ("name", "response", "reason"),
    [
        ("plain", "x" * 100_000, "too_long"),
        ("plain", "x" * 1000, None),
        ("plain", "x" * 1001, "too_long"),
        ("tagged", "<think>" * 15_000, "missing_thought"),
        ("tagged", "<think></think>" + "<action>" * 12_000, "missing_action"),
        ("tagged", f"<think>a</think><action>{'go ' * 33_000}</action>", "too_long"),
        ("tagged", f"<think>{'hm ' * 33_000}</think><action>go</action>", None),
    ],
)
@pytest.mark.timeout(5)
def test_a_response_of_100000_characters_is_read_in_linear_time(
    name: str, response: str, reason: str | None
) -> None:
    assert STRICT[name](response).invalid == reason


def test_surrogates_and_control_characters_are_no_action() -> None:
    for text in ("caf\udce9", "\x1b[31mred", "a\u202eb", "\x00"):
        assert plain(text).invalid == "unprintable"
