"""What each reader takes for a call of a tool, and that nothing a model wrote is lost."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.chat_messages import ToolCall
from skillpress.rollouts.programs import tool_calls
from skillpress.rollouts.programs.forms import forms
from skillpress.rollouts.programs.requests import ModelRequest, Reply
from skillpress.rollouts.programs.tool_calls import BROKEN, Read, Reader

NESTED = {"query": {"any": [1, 2.5, None, True, {"of": []}]}, "text": 'a "quoted"\nline: {}</tool_call>'}
LOOK, SEARCH = ToolCall("look", {"at": "the shelf"}), ToolCall("search", NESTED)


def as_hermes(call: ToolCall) -> str:
    return f"<tool_call>\n{json.dumps({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"


def as_xml(call: ToolCall) -> str:
    def value(of: Any) -> str:
        return of if isinstance(of, str) else json.dumps(of)

    given = "".join(f"<parameter={key}>\n{value(of)}\n</parameter>\n" for key, of in call.arguments.items())
    return f"<tool_call>\n<function={call.name}>\n{given}</function>\n</tool_call>"


def as_llama(call: ToolCall) -> str:
    return json.dumps({"name": call.name, "parameters": call.arguments})


READERS: dict[str, Reader] = {
    name: getattr(tool_calls, name)
    for name in ("hermes", "qwen_xml", "llama_json", "fenced", "plain", "words")
}
WRITTEN = {"hermes": as_hermes, "qwen_xml": as_xml, "llama_json": as_llama}
"""How a template writes a call that the reader of the same name reads."""
JOINED = {"hermes": "\n", "qwen_xml": "\n", "llama_json": "; "}


# A good call, several, and what is around them.


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("call", [LOOK, SEARCH, ToolCall("stop", {})], ids=["flat", "nested", "empty"])
def test_a_call_is_read_with_its_arguments_as_they_were_written(name: str, call: ToolCall) -> None:
    assert READERS[name](WRITTEN[name](call)) == Read("", (call,))


@pytest.mark.parametrize("name", WRITTEN)
def test_several_calls_of_one_response_are_read_in_order(name: str) -> None:
    calls = (LOOK, SEARCH, LOOK)
    assert READERS[name](JOINED[name].join(map(WRITTEN[name], calls))) == Read("", calls)


@pytest.mark.parametrize("name", ["hermes", "qwen_xml"])
def test_the_text_around_calls_is_kept_without_them(name: str) -> None:
    one, other = WRITTEN[name](LOOK), WRITTEN[name](SEARCH)
    said = READERS[name](f"First I look.{one} Then I search.\n{other}\nThat is all.\n")
    assert said == Read("First I look. Then I search.\n\nThat is all.", (LOOK, SEARCH))


def test_a_llama_calls_only_with_its_whole_response() -> None:
    said = f"I call {as_llama(LOOK)}"
    assert READERS["llama_json"](said) == Read(said)
    broken = f"{as_llama(LOOK)} and more"
    assert READERS["llama_json"](broken) == Read(broken, invalid=BROKEN)


def test_a_fence_is_the_call_of_the_tool_that_its_language_names_and_stays_in_the_text() -> None:
    said = "I list.\n```bash\nls -l\ncd src\n```\nThen:\n```python\nprint(1)\n```"
    assert READERS["fenced"](said) == Read(said, (ToolCall("bash", {"command": "ls -l\ncd src"}),))
    assert READERS["fenced"]("```\nls\n```").calls == (ToolCall("bash", {"command": "ls"}),)
    assert READERS["fenced"]("```python x=1\n1\n```").calls == (ToolCall("python", {"command": "1"}),)


def test_code_within_a_line_is_no_fence() -> None:
    said = "Use ```x``` here\nand ```y``` there"
    assert READERS["fenced"](said) == Read(said)


@pytest.mark.parametrize("name", ["plain", "words"])
def test_the_readers_of_words_know_no_calls(name: str) -> None:
    said = f"{as_hermes(LOOK)}\n{as_xml(LOOK)}\n```bash\nls\n```"
    assert READERS[name](f" {said}\n") == Read(said)


@pytest.mark.parametrize(
    ("name", "written", "arguments"),
    [
        ("hermes", '<tool_call>{"name": "f"}</tool_call>', {}),
        ("hermes", '<tool_call>{"name": "f", "parameters": {"a": 1}}</tool_call>', {"a": 1}),
        ("hermes", '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', {"a": 1}),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}}', {"a": 1}),
        ("llama_json", '<|python_tag|>{"name": "f", "arguments": {"a": 1}}', {"a": 1}),
        ("llama_json", '{"type": "function", "name": "f", "parameters": {"a": 1}}\n', {"a": 1}),
        ("qwen_xml", "<function=f><parameter=a>1</parameter></function>", {"a": 1}),
        ("qwen_xml", '<function=f><parameter=a>"1"</parameter></function>', {"a": '"1"'}),
        ("qwen_xml", "<function=f><parameter=a>NaN</parameter></function>", {"a": "NaN"}),
        ("qwen_xml", f"<function=f><parameter=a>{9**30}</parameter></function>", {"a": str(9**30)}),
        (
            "qwen_xml",
            "<function=f><parameter=a>\n\n  x</parameter>y</function>\n\n</parameter>\n</function>",
            {"a": "\n  x</parameter>y</function>\n"},
        ),
    ],
)
def test_forms_that_models_write_too(name: str, written: str, arguments: dict[str, Any]) -> None:
    assert READERS[name](written) == Read("", (ToolCall("f", arguments),))


# A broken call.


BROKEN_CALLS = {
    "hermes": [
        "<tool_call>",
        "<tool_call>look at the shelf</tool_call>",
        '<tool_call>{"name": "look", "arguments": {"at": </tool_call>',
        '<tool_call>{"name": "look", "arguments": {"at": "the sh',
        '<tool_call>{"name": "look"} {"name": "look"}</tool_call>',
        '<tool_call>{"name": "look"}<tool_call>{"name": "look"}</tool_call>',
        '<tool_call>{"name": 5}</tool_call>',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>["look"]</tool_call>',
        '<tool_call>{"name": "look", "arguments": ["the shelf"]}</tool_call>',
        '<tool_call>{"name": "look", "arguments": "the shelf"}</tool_call>',
        '<tool_call>{"name": "look", "arguments": "[1]"}</tool_call>',
    ],
    "qwen_xml": [
        "<tool_call>",
        "<function=look",
        "<function=look>",
        "<function=look>the shelf</function>",
        "<function=look><parameter=at>the sh",
        "<function=look><parameter=at>the shelf</function>",
        "<function=look><parameter=at>the shelf</parameter>",
        "<function=look> at <parameter=at>a</parameter></function>",
        "<function=look><parameter=at>a</parameter><parameter=at>b</parameter></function>",
        as_hermes(LOOK),
    ],
    "llama_json": [
        "{",
        "{look}",
        '{"answer": 5}',
        '{"name": "look", "parameters": [1]}',
        '{"name": "look", "parameters": {"at": "the sh',
        f"{as_llama(LOOK)}; 5",
        f"{as_llama(LOOK)}; {{",
    ],
    "fenced": ["```", "```bash", "```bash\nls -l"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name in BROKEN_CALLS for text in BROKEN_CALLS[name]]
)
def test_a_broken_call_is_marked_and_the_text_stays(name: str, text: str) -> None:
    assert READERS[name](f"  {text}\n") == Read(text, invalid=BROKEN)


@pytest.mark.parametrize(
    "value",
    ["NaN", "-Infinity", "1e999", "18446744073709551616", '"\\ud800"', "[" * 64 + "]" * 64, "[" * 90_000],
    ids=["nan", "infinity", "overflow", "65 bits", "half a character", "deep", "deeper than any stack"],
)
@pytest.mark.parametrize("name", ["hermes", "llama_json"])
def test_a_call_that_no_answer_could_carry_is_broken(name: str, value: str) -> None:
    text = WRITTEN[name](ToolCall("f", {"a": "VALUE"})).replace('"VALUE"', value)
    assert READERS[name](text) == Read(text, invalid=BROKEN)


@pytest.mark.parametrize("name", ["hermes", "qwen_xml"])
def test_one_broken_call_among_good_ones_leaves_the_whole_response_as_text(name: str) -> None:
    text = f"So: {WRITTEN[name](LOOK)} {BROKEN_CALLS[name][1]}"
    assert READERS[name](text) == Read(text, invalid=BROKEN)


# A thought.


THOUGHTS = {
    "<think>{}</think>": "",
    "{}</think>": "",  # the prompt has opened it
    "<think>{}": "",  # cut off
    "Well. <think>{}</think>": "Well.",
    "<think>{} <think> again</think>": "",
    "<think></think>Well.<think>{}</think>": "Well.",
    "Well.</think><think>{}</think>": "",
}


@pytest.mark.parametrize("name", [*WRITTEN, "fenced", "plain"])
@pytest.mark.parametrize(("thought", "rest"), THOUGHTS.items())
def test_a_call_inside_a_thought_does_not_count(name: str, thought: str, rest: str) -> None:
    for call in (WRITTEN[name](LOOK) if name in WRITTEN else "```bash\nls\n```", *BROKEN_CALLS.get(name, ())):
        said = READERS[name](thought.format(call))
        assert said.calls == () and said.invalid is None and said.content == rest
        assert call in said.thought


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_behind_a_thought_counts(name: str) -> None:
    call = WRITTEN[name](LOOK)
    assert READERS[name](f"<think>\nShould I?\n</think>\n\n{call}") == Read("", (LOOK,), "Should I?")
    assert READERS[name](f"Should I?\n</think>{call}") == Read("", (LOOK,), "Should I?")


@pytest.mark.parametrize("name", ["hermes", "llama_json"])
@pytest.mark.parametrize("tag", ["<think>", "</think>", "</think><think>", "<tool_call>", ";{"])
def test_tags_in_the_strings_of_a_call_begin_and_end_no_thought(name: str, tag: str) -> None:
    edit = ToolCall("write", {"text": f"Answer in {tag} and no other"})
    call = WRITTEN[name](edit)
    assert READERS[name](call) == Read("", (edit,))
    assert READERS[name](f"<think>So.</think>{call}") == Read("", (edit,), "So.")
    assert READERS[name](f"So.</think>{call}") == Read("", (edit,), "So.")
    if name == "hermes":  # Llama's call is the whole response
        assert READERS[name](f"<think>Perhaps {call}, no.</think>Done.") == Read(
            "Done.", (), f"Perhaps {call}, no."
        )


def test_words_keep_a_thought() -> None:
    assert READERS["words"]("<think>up</think> down ") == Read("<think>up</think> down")


# Any text.


PIECES = [
    "<tool_call>", "</tool_call>", "<think>", "</think>", "<function=f>", "</function>", "<function=",
    "<parameter=p>", "<parameter=q>", "</parameter>", "```", "```bash", "<|python_tag|>", "{", "}", '"', ";",
    '{"name": "f", "arguments": {"p": "y"}}', '{"name": "f", "parameters": {"p": ["x", {}]}}', '{"name": 1}',
    "x", "y", "z x", " ", "\n",
]  # fmt: skip
"""Parts of calls in all forms, and words. Of the letters x, y and z nothing else has any."""
RANDOM = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=40)


def letters(*texts: str) -> Counter[str]:
    return Counter(letter for letter in "".join(texts) if letter in "xyz")


@pytest.mark.parametrize("name", READERS)
@given(text=RANDOM)
def test_any_text_is_read_and_what_is_no_call_is_kept_as_text(name: str, text: str) -> None:
    said = READERS[name](text)
    kept = [said.content, said.thought]
    if name != "fenced":  # whose call stays in the text
        kept += [json.dumps([call.name, call.arguments]) for call in said.calls]
    assert letters(*kept) == letters(text)
    if not said.calls and name != "words":
        assert said == Read(READERS["plain"](text).content, (), said.thought, said.invalid)
    assert said.invalid is None or (said.invalid == BROKEN and not said.calls)


TEXTS = st.text(max_size=9) | st.sampled_from(PIECES)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(ToolCall, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3))


@pytest.mark.parametrize("name", ["hermes", "llama_json"])
@given(calls=st.lists(CALLS, min_size=1, max_size=3))
def test_calls_with_any_arguments_are_read_as_written_and_every_form_can_answer_with_them(
    name: str, calls: list[ToolCall]
) -> None:
    said = READERS[name](JOINED[name].join(map(WRITTEN[name], calls)))
    assert said == Read("", tuple(calls))
    reply = Reply(said.content, said.calls)
    for form in forms():
        json.dumps(form.write("id", "model", ModelRequest(()), [reply]), allow_nan=False)
        "".join(form.stream("id", "model", ModelRequest(()), [reply])).encode()
