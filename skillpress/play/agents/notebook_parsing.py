"""A_k = Parser(th_k) for agents that act by code, in L0's format: ``<think>…</think><code>…</code>``.

The action is Python of many lines, so that little of what ``parsing.py`` asks of an action holds here: line
breaks are part of it, and only what no interpreter can be sent is refused. Whether the code makes sense is
the interpreter's to say.

A response ends, in L0's sense, with its first ``</code>``: what comes then is the interpreter's ``<output>``.
No engine stops there, so a response may go on, and what it goes on with is judged here.
"""

from __future__ import annotations

import re
from textwrap import dedent

from skillpress.core.parsed_action import ParsedAction

LONGEST_CODE = 20_000
"""Characters of a code block at most."""
FENCE = "```"
"""Opens and closes a block of code in Markdown."""
_UNSENDABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters that are no space, and halves of characters, which no UTF-8 holds."""
_OUTPUT = re.compile("</?output>")


def notebook(response: str) -> ParsedAction:
    """``<think>thought</think><code>code</code>``.

    Tags inside the thought do not count, so a policy may think about code; the first ``</code>`` ends the
    code, wherever it stands. Other words around the two elements are ignored. The code loses the margin
    that all its lines share, and a Markdown fence where there is one around all of it: both are habits that
    change nothing of what it says.

    Invalid, and nothing is carried out: ``missing_thought``, ``missing_action``, ``unclosed`` (a thought or
    code without its end, as where the response is cut off), ``two_actions``, ``empty``, ``too_long``,
    ``unprintable``. Invalid, but the code is carried out: ``wrote_output``, where the response goes on with
    an output of its own making; the environment's answers instead, and what follows is not read.
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
    """The code without fence, margin and empty lines around it, or why it cannot be run."""
    if len(code) > LONGEST_CODE:
        return ParsedAction(thought, "", "too_long")
    if _UNSENDABLE.search(code):
        return ParsedAction(thought, "", "unprintable")
    code = dedent(_unfenced(code)).strip("\r\n")
    return ParsedAction(thought, code) if code.strip() else ParsedAction(thought, "", "empty")


def _unfenced(code: str) -> str:
    """What stands in the one Markdown block that ``code`` consists of; else ``code``."""
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
