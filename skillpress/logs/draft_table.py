"""A draft (``drafting.py``) as the text of a table of rules, with counts and advice as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from glob import escape

from skillpress.logs.drafting import Draft, Tool
from skillpress.logs.projection import MOST_SKILLS, shortened

MOST_PROGRAMS, MOST_VERBS = 30, 60
RAREST = 0.002
"""A program gets its own rule only above this share of its tool's commands."""
LISTED = 6
"""Maximum number of other programs that a comment names."""
_PLAIN = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_RESERVED = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_PROGRAM = re.compile(r"[\w.+\[-]{1,40}")


def table_of(draft: Draft, source: str) -> str:
    """The table's text.

    Args:
        source: the log's name, for the heading.
    """
    tools = list(draft.by_calls())[:MOST_SKILLS]
    rules = list(_tool_rules(tools)) if tools else list(_verb_rules(draft))
    by_verbs = sum(count for _, _, count in list(draft.by_count())[:MOST_VERBS])
    named = sum(tool.calls for _, tool in tools) if tools else by_verbs
    return "\n".join([*_heading(draft, source, named), *_shells(tools), "rules:", *rules, ""])


def _heading(draft: Draft, source: str, named: int) -> Iterator[str]:
    yield f"# Drafted by `skillpress rules` from {source}: {draft.traces:,} traces, {draft.steps:,} steps."
    yield f"# It gives {100 * named / max(draft.steps, 1):.1f}% of the steps a skill."
    if draft.tools and draft.in_words:
        yield f"# {draft.in_words:,} steps are words and have none; [answer *, Answer] would name some."
    if draft.nameless:
        yield f"# {draft.nameless:,} calls name no tool and have none."
    yield "#"
    yield "# Edit it. The first rule that fits names a step. Give steps that do the same one skill: cat, head"
    yield "# and grep may all be Inspect. `after: Edit` makes a rule fit only after a step of that skill."
    yield "# The number behind a rule says how often it fitted."
    yield ""


def _shells(tools: Sequence[tuple[str, Tool]]) -> Iterator[str]:
    found = ((name, tool.line_argument(name)) for name, tool in tools)
    held = {name: argument for name, argument in found if argument is not None}
    if held:
        yield "# The tools that run a shell, and the argument with the command line. It is split at pipes,"
        yield "# &&, ; and line breaks, so a step has a skill for each command."
        yield "shell:"
        yield from (f"  {_scalar(escape(name))}: {_scalar(argument)}" for name, argument in held.items())
        yield ""


def _tool_rules(tools: Sequence[tuple[str, Tool]]) -> Iterator[str]:
    taken = {name for name, _ in tools}
    for name, tool in tools:
        if tool.line_argument(name):
            yield f"  # {shortened(name)}: {tool.calls:,} calls run {tool.run:,} commands"
            yield from _program_rules(name, tool)
        elif (argument := tool.kind_argument()) is not None:
            yield f"  # {shortened(name)}: {tool.calls:,} calls, by {shortened(argument)}"
            yield from _kind_rules(name, argument, tool, taken)
        else:
            yield _rule(tool.calls, tool=escape(name), skill=shortened(name))


def _program_rules(name: str, tool: Tool) -> Iterator[str]:
    fewest = max(2, RAREST * tool.run)
    ranked = sorted(tool.programs.items(), key=lambda entry: (-entry[1], entry[0]))
    own = [(found, count) for found, count in ranked if count >= fewest and _PROGRAM.fullmatch(found)][
        :MOST_PROGRAMS
    ]
    for found, count in own:
        yield _rule(count, tool=escape(name), finds=rf"^{re.escape(found)}(\s|$)", skill=found)
    kept = {found for found, _ in own}
    rest = [f"{shortened(found)} {count:,}" for found, count in ranked if found not in kept]
    if rest or tool.without_command:
        rest += [f"no command {tool.without_command:,}"] if tool.without_command else []
        more = " ..." if len(rest) > LISTED else ""
        yield _rule(f"others: {', '.join(rest[:LISTED])}{more}", tool=escape(name), skill=shortened(name))


def _kind_rules(name: str, argument: str, tool: Tool, taken: set[str]) -> Iterator[str]:
    kinds, found = tool.arguments[argument].kinds, tool.arguments[argument].calls
    for kind, count in sorted(kinds.items(), key=lambda entry: (-entry[1], entry[0])):
        skill = f"{name} {kind}" if kind in taken else kind
        finds = rf"^\s*{kind}(?![\w-])"
        yield _rule(count, tool=escape(name), argument=argument, finds=finds, skill=shortened(skill))
    if others := tool.calls - found + tool.arguments[argument].others:
        yield _rule(others, tool=escape(name), skill=shortened(name))
    taken.update(kinds)


def _verb_rules(draft: Draft) -> Iterator[str]:
    for name, verb, count in list(draft.by_count())[:MOST_VERBS]:
        skill = shortened(name)
        if verb.odd or not _PLAIN.fullmatch(name):
            yield _rule(count, finds=rf"(?i)^[\s\W]*{re.escape(name)}(?![\w.:-]*\w)", skill=skill)
            continue
        for words, times in ((name, verb.alone), (f"{name} *", verb.more)):
            if times:
                yield f"  - [{_scalar(words)}, {_scalar(skill)}]  # {times:,}"


def _rule(times: int | str, **conditions: str) -> str:
    inside = ", ".join(f"{key}: {_scalar(value)}" for key, value in conditions.items())
    return f"  - {{{inside}}}  # {times if isinstance(times, str) else f'{times:,}'}"


def _scalar(text: str) -> str:
    """A text as YAML: plain, in single quotes, or with escapes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    if text.isascii() and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text)
