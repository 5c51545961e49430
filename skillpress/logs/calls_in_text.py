"""Tool calls that an agent writes into its words.

Models without an API for tools write calls as text, each in its own notation. Such text is read as a call
only if the log shows that it is one: the prompt explains the notation, or most turns use it. Fenced code
blocks and labelled actions also occur in ordinary prose, so for these a majority is not enough: the prompt
must ask for them, or the answers must look like a program's output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skillpress.environments.calls.steps import MOST_CHARACTERS, json_or
from skillpress.logs.calls_in_json import (
    ARGUMENTS,
    MARKS,
    Written,
    action_in_json,
    answered_in_json,
    called_in_json,
    in_json,
    is_name,
    shell_command,
)
from skillpress.logs.calls_in_tags import names_of_tools, reader_of
from skillpress.logs.thoughts import without_thoughts

_BLOCK = ("```",)
_SHELLS = "bash|sh|shell|zsh|console|mswea_bash_command"
_FUNCTION = re.compile(r"<function=([^>\n]{1,200})>(.*?)(?:</function>|(?=<function=)|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]{1,200})>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_INVOKE = re.compile(r'<invoke\s+name="([^"\n]{1,200})"\s*>(.*?)(?:</invoke>|\Z)', re.DOTALL)
_INVOKED = re.compile(r'<parameter\s+name="([^"\n]{1,200})"[^>]*>(.*?)</parameter>', re.DOTALL)
_PYTHON_CALL = re.compile(r"\s*([\w.]{1,200})\.call\((.*)\)", re.DOTALL)
_DEEPSEEK = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([^\n<`]{1,200})(.*?)(?:<｜tool▁call▁end｜>|\Z)",
    re.DOTALL,
)
_HARMONY = re.compile(
    r"to=(?:functions\.)?([\w.-]{1,200}).{0,100}?<\|message\|>(.*?)(?:<\|call\|>|\Z)", re.DOTALL
)
_EXECUTE = re.compile(r"<execute_(bash|ipython|browse)>(.*?)(?:</execute_\1>|\Z)", re.DOTALL)
_FENCE = re.compile(rf"```(?:{_SHELLS})[ \t]*\n(.*?)\n?```", re.DOTALL)
_NO_LANGUAGE = re.compile(r"^```[ \t]*\n(.*?)\n?```", re.DOTALL | re.MULTILINE)
_IN_A_LINE = re.compile(r"```([^`\n]+)```")
_CODE = re.compile(r"```(?:python|py)[ \t]*\n(.*?)\n?```", re.DOTALL)
_LABEL = re.compile(
    r"^[ \t>*#]*act(?:ion)?[ \t]*\d*[ \t]*\**:\**[ \t]*(?:\n[ \t]*(?=[^\s`]))?(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_THOUGHT_LABEL = re.compile(
    r"^[ \t>*#]*(?:think|thought|reason|reasoning)[ \t]*\d*[ \t]*\**:", re.IGNORECASE | re.MULTILINE
)
_LABELLED_INPUT = re.compile(
    r"^[ \t>*#]*action[ _]input[ \t]*\d*[ \t]*\**:\**[ \t]*(.*)", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_NAMED_LABEL = re.compile(
    r"^[ \t>*#]*(?:act(?:ion)?|tool|function|command)(?:[ _]name)?[ \t]*\d*[ \t]*\**:\**[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED_INPUT = re.compile(
    r"\s*^[ \t>*#]*(?:(?:action|tool|function|command)[ _])?(?:input|arguments|args|parameters)"
    r"[ \t]*\d*[ \t]*\**:\**[ \t]*(.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_ANY_FENCE = re.compile(r"\s*```([\w+-]*)[ \t]*\n(.*?)\n?[ \t]*(?:```|\Z)", re.DOTALL)
_BRACKETS = re.compile(r"([A-Za-z_][\w.-]{0,80})\s*(?:\[(.*)\]|\((.*)\))\s*\Z", re.DOTALL)
_ASKED_FOR_BLOCKS = re.compile(
    r"\b(?:exactly|only|single|one|each|every|your|must)\b.{0,80}"
    r"\b(?:code|bash|shell|command|python) ?(?:block|blob|cell)"
    r"|triple backtick|```mswea_|format_example|\b(?:put|write) your (?:\w+ )?(?:code|command)",
    re.IGNORECASE | re.DOTALL,
)
_ASKED_FOR_COMMANDS = re.compile(rf"^\W*COMMANDS:|(?is:{_ASKED_FOR_BLOCKS.pattern})", re.MULTILINE)
_ASKED_FOR_LABELS = re.compile(r"^\W*act(?:ion)?\b[ \d*]*:", re.IGNORECASE | re.MULTILINE)
_OUTPUT = re.compile(
    r"\s*(?:the )?(?:<(?:output|returncode|observation|stdout|exception|warning|tool_response"
    r"|execution_result)|observation\b"
    r"|exit code|execution (?:result|output)|output of|stdout|returncode|\(open file|\$ |your command ran)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Notation:
    """One way of writing calls."""

    name: str
    marks: tuple[str, ...]
    """Texts: every turn that uses the notation contains at least one of them."""
    calls: Callable[[str], list[Written]]
    asked: re.Pattern[str] | None = None
    """For a notation that occurs in ordinary prose too: the words of a prompt that asks for it. A prompt
    explains any other notation by its marks."""
    certain: Callable[[str], bool] | None = None
    """If set, some turn must contain this; then a majority of turns suffices without a prompt."""
    in_answers: bool = False
    """Whether an agent that calls tools in another way may end with such text. Such text is not a call, even
    if the record lists tools."""


class Heard(NamedTuple):
    """What an agent read."""

    system: str
    task: str
    """The first message of its user."""
    replies: Sequence[str]
    """The messages behind the turns in words, one each."""
    tools: bool
    """Whether the record lists tools that the agent may call."""
    called: bool
    """Whether it made other calls through an API. Its words are then not read by a notation of prose."""


def notation_of(said: Sequence[str], heard: Heard) -> Notation | None:
    """The notation in which an agent writes its calls; None if its words are only words."""
    said = [without_thoughts(words) for words in said]
    best: tuple[int, Notation] | None = None
    for notation in (*NOTATIONS[:TAGS_BEHIND], *_in_tags(said, heard), *NOTATIONS[TAGS_BEHIND:]):
        used = sum(bool(written(notation, words)) for words in said)
        if used > (best[0] if best is not None else 0) and _is_call(notation, used, said, heard):
            best = used, notation
    return None if best is None else best[1]


def _in_tags(said: Sequence[str], heard: Heard) -> Iterator[Notation]:
    """The agent's own tags as a notation, if it has some."""
    prompts = (heard.system, heard.task)
    if names := names_of_tools(said, prompts):
        marks = (f"{begun}{name}" for name in names for begun in ("<", "<|begin_", "<|begin_of_"))
        yield Notation("tags", tuple(marks), calls=reader_of(names, prompts), in_answers=True)


def written(notation: Notation, words: Any) -> list[Written]:
    """The calls in the words of a turn. Calls inside a thought are not made."""
    if not isinstance(words, str) or not any(mark in words for mark in notation.marks):
        return []
    return notation.calls(without_thoughts(words))


def _is_call(notation: Notation, used: int, said: Sequence[str], heard: Heard) -> bool:
    most = 2 * used >= len(said)
    if notation.certain is not None:
        return most and not heard.called and any(map(notation.certain, said))
    if notation.asked is None:
        shown = any(mark in prompt for prompt in (heard.system, heard.task) for mark in notation.marks)
        if notation.in_answers:
            return not heard.called and (shown or most)
        return shown or heard.tools or most
    if heard.called:
        return False
    asked = notation.asked.search(heard.system) or notation.asked.search(heard.task)
    shown = asked is not None or (notation.marks == _BLOCK and _BLOCK[0] in heard.system)
    answered = sum(bool(_OUTPUT.match(text)) for text in heard.replies)
    if notation.asked is _ASKED_FOR_LABELS:  # a thought and an action, each behind its label
        shown = shown or sum(bool(_THOUGHT_LABEL.search(words)) for words in said) >= max(2, used)
    return most and (shown or (used > 1 and 2 * answered >= used))


def _functions(text: str) -> list[Written]:
    return list(_tagged_functions(text))


def _tagged_functions(text: str) -> Iterator[Written]:
    for name, body in _FUNCTION.findall(text):
        parameters = {key.strip(): _trimmed(value) for key, value in _PARAMETER.findall(body)}
        if not parameters and body.strip()[:1] == "{":
            parameters = json_or(body.strip()) or {}
        yield name.strip(), parameters


def _tool_calls(text: str) -> list[Written]:
    found: list[Written] = []
    for body in _TAGGED.findall(text):
        inside = body.strip()
        if "<function=" in inside:
            found += _functions(inside)
        elif "<arg_key>" in inside or (inside and inside[0] not in "{["):
            pairs = {key.strip(): value for key, value in _PAIR.findall(inside)}
            found.append((re.split(r"[\s<]", inside, maxsplit=1)[0], pairs))
        else:
            found += in_json(inside)
    return found


def _invoked(text: str) -> list[Written]:
    return [
        (name, {key: _trimmed(value) for key, value in _INVOKED.findall(body)})
        for name, body in _INVOKE.findall(text)
    ]


def _python_tag(text: str) -> list[Written]:
    _, _, body = text.partition("<|python_tag|>")
    body = body.partition("<|e")[0].strip()
    if called := _PYTHON_CALL.match(body):
        return [(called[1], {"arguments": called[2]})]
    if body[:1] in ("{", "["):
        return in_json(body)
    return [("python", {"code": body})] if body else []


def _bracketed(text: str) -> list[Written]:
    """Mistral's ``[TOOL_CALLS]``, as JSON or with a name before the arguments."""
    _, _, body = text.partition("[TOOL_CALLS]")
    body = body.strip()
    if body[:1] in ("[", "{"):
        return in_json(body)
    name, mark, arguments = body.partition("{")
    name = name.removesuffix("[ARGS]").strip()
    return [(name, mark + arguments)] if name and "\n" not in name else []


def _deepseek(text: str) -> list[Written]:
    return [
        (name.strip(), body.removeprefix("<｜tool▁sep｜>").strip().strip("`").removeprefix("json").strip())
        for name, body in _DEEPSEEK.findall(text)
    ]


def _harmony(text: str) -> list[Written]:
    return [(name, body.strip()) for name, body in _HARMONY.findall(text)]


def _executed(text: str) -> list[Written]:
    return [
        (f"execute_{kind}", {"command" if kind == "bash" else "code": body.strip()})
        for kind, body in _EXECUTE.findall(text)
    ]


def _fences(text: str) -> list[Written]:
    """The last block of a shell's language; an agent that thinks first may quote others."""
    found = _FENCE.findall(text)
    return [("bash", {"command": found[-1].strip()})] if found else []


def _commands(text: str) -> list[Written]:
    """The last block without a language: a command of SWE-agent's, whose first word is its tool."""
    found = _NO_LANGUAGE.findall(text) or _IN_A_LINE.findall(text)
    return shell_command(found[-1].strip()) if found else []


def _code(text: str) -> list[Written]:
    found = _CODE.findall(text)
    return [("python", {"code": found[-1].strip()})] if found else []


def _labelled(text: str) -> list[Written]:
    """``Action: search`` and ``Action Input: ...``, ``Action: search[gcd]``, or ``Action: go to desk 1``."""
    labels = [label.strip() for label in _LABEL.findall(text) if label.strip()]
    if not labels:
        return []
    action = labels[-1].strip("`* ")
    if (given := _LABELLED_INPUT.search(text)) is not None:
        return [(action, _given(given[1]))]
    if bracketed := _BRACKETS.match(action):
        return [(bracketed[1], {"input": bracketed[2] if bracketed[2] is not None else bracketed[3]})]
    return (answered_in_json(action) if action[:1] == "{" else []) or [(None, action)]


def _given(text: str) -> Any:
    """The input of a labelled action: JSON, or the text before the next label."""
    text = re.split(r"\n\s*(?:Observation|Thought)\b", text, maxsplit=1)[0].strip().strip("`").strip()
    loaded = json_or(text) if text[:1] == "{" else None
    return loaded if loaded is not None else {"input": text}


def _called_by_label(text: str) -> list[Written]:
    """``Act: bash`` with a fence, ``Action: search`` with ``Action Input: ...``, or ``Action: Answer``."""
    labels = list(_NAMED_LABEL.finditer(text))
    if not labels:
        return []
    name, behind = labels[-1][1].strip().strip("`* "), text[labels[-1].end() :]
    if bracketed := _BRACKETS.match(name):
        return [(bracketed[1], {"input": bracketed[2] if bracketed[2] is not None else bracketed[3]})]
    fence, given = _ANY_FENCE.match(behind), _NAMED_INPUT.match(behind)
    if not name and fence is not None:
        shell = re.fullmatch(_SHELLS, fence[1]) is not None
        tool = "bash" if shell else fence[1]
        calls = answered_in_json(fence[2]) if tool in ("", "json") else []
        return calls or ([(tool, {"command" if shell else "input": fence[2]})] if is_name(tool) else [])
    if not is_name(name):
        return []
    if fence is not None:
        shell = re.fullmatch(_SHELLS, name.lower()) is not None
        return [(name, {"command" if shell else "input": fence[2].strip()})]
    return [(name, _given(given[1]) if given is not None else {"input": behind.strip()[:MOST_CHARACTERS]})]


def _is_labelled(text: str) -> bool:
    """Whether a label names a tool and is followed by its input."""
    for label in _NAMED_LABEL.finditer(text):
        name, behind = label[1].strip().strip("`* "), text[label.end() :]
        acts = not name and label[0].lower().lstrip(" \t>*#").startswith("act")
        if (acts or is_name(name)) and _ANY_FENCE.match(behind) is not None:
            return True
        if is_name(name) and _NAMED_INPUT.match(behind) is not None:
            return True
    return False


def _trimmed(value: str) -> str:
    """A parameter without the line breaks that the notation puts around it."""
    return value.removeprefix("\n").removesuffix("\n")[:MOST_CHARACTERS]


NOTATIONS = (
    Notation("<tool_call>", ("<tool_call>",), calls=_tool_calls),
    Notation("<function=...>", ("<function=",), calls=_functions),
    Notation("<invoke>", ("<invoke ",), calls=_invoked),
    Notation("<|python_tag|>", ("<|python_tag|>",), calls=_python_tag),
    Notation("[TOOL_CALLS]", ("[TOOL_CALLS]",), calls=_bracketed),
    Notation("DeepSeek", ("<｜tool▁call▁begin｜>",), calls=_deepseek),
    Notation("Harmony", ("<|message|>",), calls=_harmony),
    Notation("<execute_...>", ("<execute_bash>", "<execute_ipython>", "<execute_browse>"), calls=_executed),
    Notation("JSON", tuple(f'"{key}"' for key in ARGUMENTS), calls=called_in_json),
    Notation("commands in JSON", MARKS, calls=answered_in_json, in_answers=True),
    Notation("actions in JSON", ('"action"',), calls=action_in_json, in_answers=True),
    Notation("labelled calls", (":",), calls=_called_by_label, certain=_is_labelled),
    Notation("fenced shell", _BLOCK, calls=_fences, asked=_ASKED_FOR_BLOCKS),
    Notation("fenced commands", _BLOCK, calls=_commands, asked=_ASKED_FOR_COMMANDS),
    Notation("fenced Python", _BLOCK, calls=_code, asked=_ASKED_FOR_BLOCKS),
    Notation("labelled actions", ("Act", "ACT", "act"), calls=_labelled, asked=_ASKED_FOR_LABELS),
)
"""All notations, the more specific first. If two fit equally often, the first one wins."""
TAGS_BEHIND = next(place for place, notation in enumerate(NOTATIONS) if notation.name == "JSON")
"""Where the agent's own tags rank among these; they differ between conversations."""
FENCED_SHELL = next(notation for notation in NOTATIONS if notation.name == "fenced shell")
