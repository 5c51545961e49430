"""Functions of the host that code inside calls by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError, validate_call

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox.limits import ToolError
from skillpress.rollouts.sandbox.messages import Call, Message
from skillpress.rollouts.sandbox.output import cut_in_the_middle

SHOWN = 1000
"""Maximum number of characters in an error about a call's arguments, whose names the calling code chose."""
Tool = Callable[..., Any]
"""A function called on the host with the arguments from the code inside, after they have been checked against
its annotations. It returns a value that JSON can hold. The agent sees a ToolError; any other exception ends
the episode as an error of the host."""


class Tools:
    """The functions that may be called, by name."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def add(self, tools: Mapping[str, Tool]) -> None:
        """Let these functions be called too; ``UserError`` if a name is not an identifier."""
        for name in tools:
            if not name.isidentifier():
                raise UserError(f"sandbox tools: {name!r} cannot be the name of a function")
        self._tools |= {name: validate_call(tool) for name, tool in tools.items()}

    def carry_out(self, call: Call) -> Message:
        """The reply to a call from inside."""
        if call.name not in self._tools:
            return _refusal(f"there is no tool of this name; there are: {', '.join(self._tools)}")
        try:
            return {"value": self._tools[call.name](*call.args, **call.kwargs), "error": None}
        except ToolError as error:
            return _refusal(str(error))
        except ValidationError as error:
            wrong = [
                f"{'.'.join(map(str, part['loc']))}: {part['msg']}"
                for part in error.errors(include_url=False, include_context=False, include_input=False)
            ]
            told = cut_in_the_middle("; ".join(wrong), SHOWN)[0]
            return _refusal(f"{call.name} cannot be called like that: {told}")


def _refusal(why: str) -> Message:
    return {"value": None, "error": why}
