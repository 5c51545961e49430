"""Other forms for the answers in text games: the action alone, JSON, XML, and a plan above the action.

``policy.parser`` names a form, and the prompt asks for it: it replaces the last lines of
``prompts.game_prompt``, which ask for tags. A prompt in a file asks in its own words. The parsers in
``agents/structured_parsing.py`` read the answers that are written here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from skillpress.core.interface import AgentState, Info, Rendering
from skillpress.core.parsed_action import Parser
from skillpress.environments.text.prompts import ANSWER, ANSWER_WITHOUT_CHOICES


@dataclass(frozen=True)
class AnswerForm:
    """A form of answers."""

    asks: str
    """The lines of the prompt that ask for it; ``{choice}`` says where actions are chosen from."""
    write: Callable[[str, str], str]
    """Writes (thought, action) as an answer."""


def _json(thought: str, action: str) -> str:
    return json.dumps({"thought": thought, "action": action}, ensure_ascii=False)


def _xml(thought: str, action: str) -> str:
    return f"<step><thought>{escape(thought)}</thought><action>{escape(action)}</action></step>"


def _plain(thought: str, action: str) -> str:
    return action


def _planned(thought: str, action: str) -> str:
    """Write an answer with a plan. The demonstrator's plan is the kind of its action: the action's first
    word."""
    kind = action.replace("(", " ").split()[0]
    return f"<think>{thought}</think><plan>{kind}</plan><action>{action}</action>"


FORMS: Mapping[str, AnswerForm] = {
    "plain": AnswerForm("Answer with the one action that you choose{choice} and nothing else.\n", _plain),
    "json": AnswerForm(
        """\
Think before you act. Answer with one JSON object and nothing else, {{"thought": "...", "action": "..."}}:
your reasoning, then the one action that you choose{choice}.
""",
        _json,
    ),
    "xml": AnswerForm(
        """\
Think before you act. Answer with <step><thought>...</thought><action>...</action></step> and nothing else:
your reasoning, then the one action that you choose{choice}. Write &lt; and &amp; for < and & in them.
""",
        _xml,
    ),
    "planned": AnswerForm(
        """\
Think before you act: write your reasoning between <think> and </think>. After it, write in a word or a few
what kind of step you plan between <plan> and </plan>. Then write the one action that you choose{choice} to
do so between <action> and </action>.
""",
        _planned,
    ),
}
"""Maps ``policy.parser`` to the form."""


@dataclass(frozen=True)
class Answering:
    """A text rendering whose answers have another form."""

    rendering: Rendering
    parser: str
    """A name in ``FORMS``."""
    read: Parser
    """Parses the rendering's own answers."""
    asks: bool = True
    """Whether the prompt is made to ask for the form; False for a prompt in a file."""

    @property
    def history(self) -> int | None:
        """Same as the rendering's."""
        return self.rendering.history

    def prompt(self, state: AgentState) -> str:
        """The rendering's prompt with other last lines."""
        asks, said = FORMS[self.parser].asks, self.rendering.prompt(state)
        if not self.asks:
            return said
        for usual, choice in ((ANSWER, " from the list"), (ANSWER_WITHOUT_CHOICES, "")):
            if said.endswith(usual):
                return said.removesuffix(usual) + asks.format(choice=choice)
        raise ValueError("the prompt does not end with the last lines of game_prompt")

    def continuation(self, state: AgentState) -> str:
        """Same as the rendering's."""
        return self.rendering.continuation(state)

    def response(self, action: str, info: Info) -> str:
        """The rendering's answer, rewritten in this form."""
        parsed = self.read(self.rendering.response(action, info))
        return FORMS[self.parser].write(parsed.thought, parsed.action)
