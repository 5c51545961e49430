"""Both grammars, and the message for a text that fits neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.code_repair.actions import (
    LONGEST,
    ApplyChange,
    Bash,
    Insert,
    Replace,
    RunTests,
    ShowPage,
    Submit,
    ToolCall,
    View,
    read_action,
)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"tool": "bash", "command": "ls -l"}', Bash(tool="bash", command="ls -l")),
        ('{"tool": "edit", "command": "view", "path": "a.py", "view_range": [1, 2]}',
         View(tool="edit", command="view", path="a.py", view_range=[1, 2])),
        ('{"tool": "edit", "command": "str_replace", "path": "a.py", "old_str": "a\\nb", "new_str": ""}',
         Replace(tool="edit", command="str_replace", path="a.py", old_str="a\nb", new_str="")),
        ('{"tool": "edit", "command": "insert", "path": "a.py", "insert_line": 0, "new_str": "x"}',
         Insert(tool="edit", command="insert", path="a.py", insert_line=0, new_str="x")),
        ('{"tool": "edit", "command": "change", "number": 7}',
         ApplyChange(tool="edit", command="change", number=7)),
        ("edit 7", ApplyChange(tool="edit", command="change", number=7)),
        ("view 2", ShowPage(tool="edit", command="list", page=2)),
        (" test ", RunTests(tool="test")),
        ("submit", Submit(tool="submit")),
    ],
)  # fmt: skip
def test_a_call_is_read_and_its_wording_says_the_same(text: str, call: ToolCall) -> None:
    assert read_action(text) == (call, "")
    assert read_action(call.wording) == (call, ""), "an episode is played again from its wordings"


def test_a_slot_is_one_of_the_page_that_is_seen() -> None:
    assert read_action("edit 1", page=3)[0] == ApplyChange(tool="edit", command="change", number=25)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ls", "Invalid JSON"),
        ("edit 13", "Invalid JSON"),
        (
            '{"tool": "sed"}',
            "'sed' found using 'tool' does not match any of the expected tags: 'bash', 'edit'",
        ),
        ('{"tool": "edit", "command": "view"}', "edit.view.path: Field required"),
        ('{"tool": "bash", "command": 1}', "bash.command: Input should be a valid string"),
        ('{"tool": "submit", "now": true}', "submit.now: Extra inputs are not permitted"),
        ("x" * (LONGEST + 1), "has 20001 characters; at most 20000 are read"),
    ],
)
def test_what_is_wrong_with_a_text_is_named(text: str, said: str) -> None:
    call, wrong = read_action(text)
    assert call is None and said in wrong


@pytest.mark.parametrize("word", ["edit", "view"])
def test_a_number_of_thousands_of_digits_has_a_reading_too(word: str) -> None:
    call, _ = read_action(f"{word} 000000001{'9' * 5000}")
    assert call is not None and len(call.wording) < 100


@given(st.text(max_size=80))
def test_every_text_has_a_reading(text: str) -> None:
    call, wrong = read_action(text)
    assert (call is None) == bool(wrong)
