"""Parsers are total: every text yields an action, or says why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.agents.parsing import PARSERS, plain, tagged
from skillpress.interface import ParsedAction

broken = st.lists(
    st.one_of(
        st.sampled_from(["<think>", "</think>", "<action>", "</action>", "reset", " ", "\n"]), st.text()
    ),
    max_size=12,
).map("".join)


@pytest.mark.parametrize("name", PARSERS)
@given(response=broken)
def test_any_text_gives_a_printable_action_or_a_reason_never_both(name: str, response: str) -> None:
    parsed = PARSERS[name](response)
    assert (parsed.action == "") == (parsed.invalid is not None)
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
        ("<think>a</think><action>op(+,\n1, 2)</action>", "unprintable"),
    ],
)
def test_tagged_says_what_is_wrong(response: str, reason: str) -> None:
    assert tagged(response).invalid == reason


def test_the_thought_is_kept_when_the_action_is_missing() -> None:
    assert tagged("<think>hm</think>").thought == "hm"
