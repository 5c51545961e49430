"""A_k = Parser(th_k) for agents that act by code, in L0's format: ``<think>…</think><code>…</code>``.

The action is Python code of many lines, so few of the rules of ``parsing.py`` apply: line breaks are allowed,
and only text that cannot be sent to an interpreter is refused. Whether the code makes sense is for the
interpreter to decide.

In L0 a response ends with its first ``</code>``, and the interpreter's ``<output>`` follows. Engines here do
not stop at ``</code>``, so a response may continue, and this parser judges the continuation.
"""

from __future__ import annotations

import re
from textwrap import dedent

from skillpress.core.parsed_action import ParsedAction

LONGEST_CODE = 20_000
"""Maximum number of characters in a code block."""
FENCE = "```"
"""Marks the start and the end of a code block in Markdown."""
_UNSENDABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
"""Matches control characters other than whitespace, and lone surrogates, which UTF-8 cannot encode."""
_OUTPUT = re.compile("</?output>")


def notebook(response: str) -> ParsedAction:
    """Parse ``<think>thought</think><code>code</code>``.

    Tags inside the thought do not count, so a policy may think about code. The first ``</code>`` ends the
    code, wherever it is. Other text around the two elements is ignored. The code loses the indentation that
    all its lines share, and a Markdown fence around all of it. Both are habits that do not change what the
    code does.

    Invalid, and nothing is executed: ``missing_thought``, ``missing_action``, ``unclosed`` (a thought or code
    without its end tag, for example because the response was cut off), ``two_actions``, ``empty``,
    ``too_long``, ``unprintable``. Invalid, but the code is executed: ``wrote_output``, if the response
    continues with an output that the policy made up. The environment gives the real output, and the
    continuation is not read.
    """
    before, opened, answer = response.partition("<think>")
    if not opened:
        return ParsedAction("", "", "missing_thought")
    thought, closed, answer = answer.partition("</think>")
    thought = thought.strip()
    if not closed:
        return ParsedAction(thought, "", "unclosed")
    between, opened, answer = answer.partition("<code>")
    if not opened:
        return ParsedAction(thought, "", "missing_action")
    code, closed, after = answer.partition("</code>")
    if not closed:
        return ParsedAction(thought, "", "unclosed")
    if any(_OUTPUT.search(text) for text in (before, between, after)):
        carried_out = _checked(thought, code)
        return (
            carried_out if carried_out.invalid else ParsedAction(thought, carried_out.action, "wrote_output")
        )
    if "<code>" in after:
        return ParsedAction(thought, "", "two_actions")
    return _checked(thought, code)


def _checked(thought: str, code: str) -> ParsedAction:
    """The code without fence, shared indentation and empty ends, or the reason it cannot be run."""
    if len(code) > LONGEST_CODE:
        return ParsedAction(thought, "", "too_long")
    if _UNSENDABLE.search(code):
        return ParsedAction(thought, "", "unprintable")
    code = dedent(_unfenced(code)).strip("\r\n")
    return ParsedAction(thought, code) if code.strip() else ParsedAction(thought, "", "empty")


def _unfenced(code: str) -> str:
    """The content of the Markdown block if ``code`` is exactly one block; otherwise ``code``."""
    text = code.strip()
    parts = text.split(FENCE)
    language, line_ends, inside = parts[1].partition("\n") if len(parts) == 3 else ("", "", "")
    only_a_block = (
        bool(line_ends)
        and not parts[0]
        and not parts[2]
        and (not language.strip() or language.strip().isalnum())
    )
    return inside if only_a_block else code
