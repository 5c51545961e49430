"""Named facts: what the agent writes in ``<fact name="...">...</fact>`` in its thought, and the sections of
the environment's notepad, if it shows one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from skillpress.core.interface import AgentState, HasNotepad, Info, Rendering

_FACT = re.compile(r'<fact name="([^"<>]+)">(.*?)</fact>', re.DOTALL)
REQUEST = """\
In your reasoning, still before </think>, you can write down a fact that you will need later, as
<fact name="a short name">the fact</fact>. A later fact of the same name replaces it. At each step your notes
show the facts that are nearest to what you see.
"""


def named_facts(thought: str, info: Info) -> Mapping[str, str]:
    """Maps names to texts, without empty ones; a fact in the thought takes precedence over a section of the
    same name.
    """
    sections = info.state.notepad if isinstance(info.state, HasNotepad) else {}
    found = {**sections, **dict(_FACT.findall(thought))}
    facts = {" ".join(name.split()): " ".join(text.split()) for name, text in found.items()}
    return {name: text for name, text in facts.items() if name and text}


@dataclass(frozen=True)
class AsksForFacts:
    """A rendering whose prompts say how to write a fact."""

    rendering: Rendering

    @property
    def parser(self) -> str:
        """Same as the rendering's."""
        return self.rendering.parser

    @property
    def history(self) -> int | None:
        """Same as the rendering's."""
        return self.rendering.history

    def prompt(self, state: AgentState) -> str:
        """The rendering's prompt, followed by instructions for writing a fact."""
        return f"{self.rendering.prompt(state)}\n{REQUEST}"

    def continuation(self, state: AgentState) -> str:
        """Same as the rendering's. Prompts with a store are never extended."""
        return self.rendering.continuation(state)

    def response(self, action: str, info: Info) -> str:
        """Same as the rendering's: demonstrators write no facts."""
        return self.rendering.response(action, info)
