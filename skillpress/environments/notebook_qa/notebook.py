"""The interpreter as the agent finds it: tools, and a notepad that outlives its interpreter.

The notepad is L0's (section 2.2): an object that code changes as it likes, with sections for the plan, for
facts and for drafts. After every cell its contents are taken out, as text, for what the next prompt shows.
An interpreter that its own code has ended is replaced by one whose notepad holds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillpress.play.sandbox import Execution, Sandbox

SECTIONS = ("plan", "facts", "drafts")
MOST_IN_A_SECTION = 8000
"""Characters of a section that are taken out of the interpreter."""
KEEP = "_keep_notepad"
"""The tool by which the notepad's contents come out."""
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
    """Put tools and notepad into a fresh interpreter.

    Args:
        notepad: section to text of the notepad that it goes on from.
    """
    sandbox.use_tools(tools)
    lines = {name: _lines(notepad.get(name, "")) for name in SECTIONS}
    sandbox.execute(_PRELUDE % lines)


def run_cell(sandbox: Sandbox, code: str) -> Execution:
    """Run code, and let the notepad's contents come out where there is still an interpreter."""
    execution = sandbox.execute(code)
    if sandbox.alive:
        sandbox.execute(TAKE_OUT)
    return execution


def shown(execution: Execution, told: str = "") -> str:
    """What the agent sees of a cell.

    Args:
        told: what it is to know besides, first; empty for nothing.
    """
    parts = (told, execution.stdout, execution.stderr, execution.result, execution.error)
    return "\n".join(part.rstrip() for part in parts if part and part.strip()) or "(no output)"


def _lines(text: str) -> list[str]:
    return [line.removeprefix("- ") for line in text.splitlines()]
