"""How an action's text becomes a tool call.

A language model writes one JSON object, in which a line break is ``\\n``:

    {"tool": "bash", "command": "ls"}
    {"tool": "edit", "command": "view", "path": "gcd.py", "view_range": [1, 12]}
    {"tool": "edit", "command": "str_replace", "path": "gcd.py", "old_str": "a % b", "new_str": "b"}
    {"tool": "edit", "command": "insert", "path": "gcd.py", "insert_line": 3, "new_str": "    return a"}
    {"tool": "edit", "command": "change", "number": 7}
    {"tool": "test"}
    {"tool": "submit"}

A policy trained from scratch writes short words for some of them: ``view 2`` (a page of the listed changes),
``edit 7`` (the seventh change of the page that it sees), ``test`` and ``submit``.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

LONGEST = 20_000
"""Maximum number of characters in an action."""


class ToolCall(BaseModel):
    """One tool call; its wording is its JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @property
    def wording(self) -> str:
        """The canonical text of this action."""
        return json.dumps(self.model_dump(exclude_none=True))


class Bash(ToolCall):
    """Run a command in the repository."""

    tool: Literal["bash"]
    command: str


class View(ToolCall):
    """Show a file."""

    tool: Literal["edit"]
    command: Literal["view"]
    path: str
    view_range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None


class Replace(ToolCall):
    """Replace a piece of a file."""

    tool: Literal["edit"]
    command: Literal["str_replace"]
    path: str
    old_str: str
    new_str: str


class Insert(ToolCall):
    """Add lines to a file."""

    tool: Literal["edit"]
    command: Literal["insert"]
    path: str
    insert_line: int
    new_str: str


class ApplyChange(ToolCall):
    """Write the original faulty program with one listed change."""

    tool: Literal["edit"]
    command: Literal["change"]
    number: int


class ShowPage(ToolCall):
    """Show a page of the listed changes."""

    tool: Literal["edit"]
    command: Literal["list"]
    page: int


class RunTests(ToolCall):
    """Run the visible tests."""

    tool: Literal["test"]


class Submit(ToolCall):
    """End the episode; the hidden tests decide."""

    tool: Literal["submit"]


Edit = Annotated[View | Replace | Insert | ApplyChange | ShowPage, Field(discriminator="command")]
Action = Bash | View | Replace | Insert | ApplyChange | ShowPage | RunTests | Submit
PAGE = 12
"""Number of listed changes on a page."""
_CALLS: TypeAdapter[Action] = TypeAdapter(
    Annotated[Bash | Edit | RunTests | Submit, Field(discriminator="tool")]
)


def read_action(text: str, page: int = 1) -> tuple[Action | None, str]:
    """Return (the call, "") or (None, what is wrong with the text). ``page`` is the page currently shown,
    counted from 1."""
    if len(text) > LONGEST:
        return None, f"the action has {len(text)} characters; at most {LONGEST} are read"
    words = text.split()
    match words:
        case ["test"]:
            return RunTests(tool="test"), ""
        case ["submit"]:
            return Submit(tool="submit"), ""
        case ["view", number] if number.isdecimal():
            return ShowPage(tool="edit", command="list", page=int(number[:9])), ""
        case ["edit", slot] if slot.isdecimal() and 1 <= int(slot[:9]) <= PAGE:
            place = (page - 1) * PAGE + int(slot[:9])
            return ApplyChange(tool="edit", command="change", number=place), ""
    try:
        return _CALLS.validate_json(text), ""
    except ValidationError as error:
        wrong = [
            ": ".join([*[".".join(map(str, part["loc"]))] * bool(part["loc"]), part["msg"]])
            for part in error.errors(include_url=False)
        ]
        return None, f"the action is no call of a tool: {'; '.join(wrong)[:600]}"
