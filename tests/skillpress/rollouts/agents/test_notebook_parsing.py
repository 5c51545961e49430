"""L0's format: a thought, then code. Any text yields code to run or a reason why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.parsed_action import FORMAT_REASONS, LET_THROUGH, ParsedAction
from skillpress.environments.text.prompts import notebook_answer
from skillpress.rollouts.agents.notebook_parsing import LONGEST_CODE, notebook

TAGS = [
    "<think>",
    "</think>",
    "<code>",
    "</code>",
    "<output>",
    "</output>",
    "```",
    "```python\n",
    "\n",
    "x = 1",
]
broken = st.lists(st.one_of(st.sampled_from(TAGS), st.text()), max_size=12).map("".join)


@given(response=broken)
def test_any_text_gives_code_or_a_reason_and_both_only_where_it_is_let_through(response: str) -> None:
    parsed = notebook(response)
    assert parsed.invalid is None or parsed.invalid in FORMAT_REASONS
    if parsed.action:
        assert parsed.invalid is None or parsed.invalid in LET_THROUGH
        parsed.action.encode()  # code that is run can be sent
    else:
        assert parsed.invalid is not None


@given(
    code=st.text(st.characters(codec="utf-8", exclude_characters="<`", exclude_categories=["Cc"]), min_size=1)
)
def test_a_demonstrators_answer_is_read_as_it_was_meant(code: str) -> None:
    line = f"print({code!r})"
    assert notebook(notebook_answer("I look.", line)) == ParsedAction("I look.", line)


def test_the_lines_of_the_code_and_their_indentation_are_kept() -> None:
    response = (
        "<think>\nI count.\n</think>\n<code>\nfor i in range(2):\n    print(i)\n\nprint('end')\n</code>"
    )
    assert notebook(response) == ParsedAction("I count.", "for i in range(2):\n    print(i)\n\nprint('end')")


def test_a_margin_that_all_lines_share_is_taken_off() -> None:
    assert notebook("<think>a</think><code>\n  x = 1\n  x\n</code>").action == "x = 1\nx"


@pytest.mark.parametrize(
    ("code", "run"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("\n```\nx = 1\nx\n```\n", "x = 1\nx"),
        ("```python\nx\n```\n```python\ny\n```", "```python\nx\n```\n```python\ny\n```"),
        ("print('```')", "print('```')"),
        ("```x```", "```x```"),
    ],
)
def test_a_fence_around_all_of_the_code_is_taken_off_and_no_other(code: str, run: str) -> None:
    assert notebook(f"<think>a</think><code>{code}</code>") == ParsedAction("a", run)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "missing_thought"),
        ("x = 1", "missing_thought"),
        ("<code>x</code>", "missing_thought"),
        ("<code>x</code><think>late</think>", "missing_action"),
        ("<think>a", "unclosed"),
        ("<think>a<code>x</code>", "unclosed"),
        ("<think>a</think>", "missing_action"),
        ("<think>maybe <code>x</code>?</think>", "missing_action"),
        ("<think>a</think>```python\nx\n```", "missing_action"),
        ("<think>a</think><code>x", "unclosed"),
        ("<think>a</think><code>x</code><code>y</code>", "two_actions"),
        ("<think>a</think><code>x</code> then <code>", "two_actions"),
        ("<think>a</think><code></code>", "empty"),
        ("<think>a</think><code>\n \n</code>", "empty"),
        ("<think>a</think><code>```python\n```</code>", "empty"),
        (f"<think>a</think><code>{'x' * (LONGEST_CODE + 1)}</code>", "too_long"),
        ("<think>a</think><code>x = '\x00'</code>", "unprintable"),
        ("<think>a</think><code>x = '\ud800'</code>", "unprintable"),
    ],
)
def test_it_says_what_is_wrong_and_runs_nothing(response: str, reason: str) -> None:
    parsed = notebook(response)
    assert (parsed.invalid, parsed.action) == (reason, "")


@pytest.mark.parametrize(
    "response",
    [
        "<think>a</think><code>x</code><output>3</output>",
        "<think>a</think><code>x</code>\n<output>\n3\n</output><think>b</think><code>y</code>",
        "<output>3</output><think>a</think><code>x</code>",
        "<think>a</think></output><code>x</code>",
    ],
)
def test_an_output_of_the_policys_own_is_a_fault_and_its_first_code_is_run(response: str) -> None:
    assert notebook(response) == ParsedAction("a", "x", "wrote_output")


def test_outputs_may_be_thought_of_and_printed() -> None:
    response = "<think>it said <output>3</output></think><code>print('<output>')</code>"
    assert notebook(response) == ParsedAction("it said <output>3</output>", "print('<output>')")


def test_the_thought_is_kept_where_there_is_no_code() -> None:
    assert notebook("<think> hm </think>").thought == "hm"
