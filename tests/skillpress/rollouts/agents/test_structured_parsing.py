"""Answers in JSON, in XML and with a plan: parsers read what renderings write, and nothing else is carried
out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.parsed_action import FORMAT_REASONS, Parser
from skillpress.core.registry import PARSERS, lookup
from skillpress.environments.text.answer_forms import FORMS
from skillpress.rollouts.agents.parsing import LONGEST_ACTION, plain
from skillpress.rollouts.agents.structured_parsing import json_object, planned, xml

printable = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=40)
untagged = st.text(
    st.characters(codec="ascii", exclude_characters="<>", min_codepoint=33, max_codepoint=126), min_size=1
)


@given(printable, printable, st.sampled_from(["json", "xml"]))
def test_what_json_and_xml_say_is_read_whatever_characters_are_in_it(
    thought: str, action: str, name: str
) -> None:
    parse: Parser = lookup(PARSERS, name, "policy.parser")
    said = parse(FORMS[name].write(thought, action))
    assert (said.thought, said.action, said.invalid) == (thought, action, None)
    assert parse(f"Sure. {FORMS[name].write(thought, action)} Done.") == said


@given(untagged, untagged)
def test_a_plan_is_the_last_line_of_the_thought_and_the_first_word_of_a_demonstrated_action(
    thought: str, action: str
) -> None:
    if not action.replace("(", " ").split():
        return
    said = planned(FORMS["planned"].write(thought, action))
    assert (said.action, said.invalid) == (action, None)
    assert said.thought == f"{thought}\nPlan: {action.replace('(', ' ').split()[0]}"


@given(st.text(st.sampled_from('{}[]",: atcinohugp<>/&;\\') | st.characters(), max_size=80))
def test_every_text_is_an_action_or_a_reason(text: str) -> None:
    for parse in (json_object, xml, planned):
        said = parse(text)
        assert (said.invalid is None) == bool(said.action)
        assert said.invalid is None or said.invalid in FORMAT_REASONS
        assert plain(said.action) == plain(said.action.strip())


@pytest.mark.parametrize(
    ("parse", "response", "reason"),
    [
        (json_object, "open the door", "missing_action"),
        (json_object, '{"thought": "a", "action": "b"', "unclosed"),
        (json_object, '{"action": "b"}', "missing_thought"),
        (json_object, '{"thought": 1, "action": "b"}', "missing_thought"),
        (json_object, '{"thought": "a", "action": ["b"]}', "missing_action"),
        (json_object, '{"thought": "a", "action": "b", "action": "c"}', "two_actions"),
        (json_object, '{"thought": "a", "action": " "}', "empty"),
        (json_object, json.dumps({"thought": "a", "action": "b" * (LONGEST_ACTION + 1)}), "too_long"),
        (json_object, '{"thought": "a", "action": "b\\nc"}', "unprintable"),
        (json_object, "{" * 15_000, "unclosed"),
        (json_object, '{"a": ' + "[" * 15_000, "unclosed"),
        (json_object, '{"thought": "a", "action": ' + "1" * 9_000 + "}", "unclosed"),
        (json_object, " " * 30_000, "too_long"),
        (xml, "<step><action>b</action></step>", "missing_thought"),
        (xml, "<step><thought>a</thought></step>", "missing_action"),
        (xml, "<step><thought>a</thought><action>b</action>", "unclosed"),
        (xml, "<step><thought>a</thought><action>b</action><action>c</action></step>", "two_actions"),
        (xml, "<step><thought>a</thought><action> </action></step>", "empty"),
        (planned, "<think>a</think><action>b</action>", "missing_plan"),
        (planned, "<think>a</think><plan> </plan><action>b</action>", "missing_plan"),
        (planned, "<think>a</think><action>b</action><plan>c</plan>", "missing_plan"),
        (planned, "<plan>c</plan><action>b</action>", "missing_thought"),
        (planned, "<think>a</think><plan>c</plan>", "missing_action"),
    ],
)  # fmt: skip
def test_a_malformed_answer_has_its_reason_and_no_action(parse: Parser, response: str, reason: str) -> None:
    said = parse(response)
    assert (said.action, said.invalid) == ("", reason)


def test_half_a_character_in_a_thought_becomes_a_question_mark() -> None:
    said = json_object(r'{"thought": "a \ud83d", "action": "b"}')
    assert (said.thought, said.action, said.invalid) == ("a ?", "b", None)
