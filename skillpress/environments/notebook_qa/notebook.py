"""Prepare the agent's interpreter: tools, and a notepad that survives the loss of the interpreter.

The notepad is L0's (section 2.2): an object that code may change freely, with sections for the plan, for
facts and for drafts. After every cell its contents are copied to the host, as text, for the next prompt. If
an interpreter is ended by its own code, its replacement gets a notepad with the same contents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillpress.rollouts.sandbox import Execution, Sandbox

SECTIONS = ("plan", "facts", "drafts")
MOST_IN_A_SECTION = 8000
"""Maximum number of characters of a section that are copied to the host."""
KEEP = "_keep_notepad"
"""Name of the tool that copies the notepad's contents to the host."""
TAKE_OUT = f"{KEEP}(notepad.sections())"

_PRELUDE = f'''
class Notepad:
    """What is to be remembered: lists that can be changed at will."""

    def __init__(self, plan=(), facts=(), drafts=()):
        self.plan, self.facts, self.drafts = list(plan), list(facts), list(drafts)

    def sections(self):
        """Section to its lines; a section that is no list is one line."""
        shown = {{}}
        for name in {SECTIONS}:
            section = getattr(self, name, ())
            lines = section if isinstance(section, (list, tuple)) else [section]
            shown[name] = "\\n".join("- " + str(line) for line in lines)[:{MOST_IN_A_SECTION}]
        return shown

    def __repr__(self):
        return "\\n".join(name + ":\\n" + text for name, text in self.sections().items())

notepad = Notepad(**%r)
'''


def open_notebook(
    sandbox: Sandbox, tools: Mapping[str, Callable[..., object]], notepad: Mapping[str, str]
) -> None:
    """Add tools and notepad to a new interpreter.

    Args:
        notepad: maps sections to texts, the initial contents of the notepad.
    """
    sandbox.use_tools(tools)
    lines = {name: _lines(notepad.get(name, "")) for name in SECTIONS}
    sandbox.execute(_PRELUDE % lines)


def run_cell(sandbox: Sandbox, code: str) -> Execution:
    """Run code, then copy the notepad's contents to the host if the interpreter is still alive."""
    execution = sandbox.execute(code)
    if sandbox.alive:
        sandbox.execute(TAKE_OUT)
    return execution


def shown(execution: Execution, told: str = "") -> str:
    """The text that the agent sees of a cell.

    Args:
        told: an additional message that comes first; empty for none.
    """
    parts = (told, execution.stdout, execution.stderr, execution.result, execution.error)
    return "\n".join(part.rstrip() for part in parts if part and part.strip()) or "(no output)"


def _lines(text: str) -> list[str]:
    return [line.removeprefix("- ") for line in text.splitlines()]
