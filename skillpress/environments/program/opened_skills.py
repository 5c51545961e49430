"""Which skills a program's episode opened, as far as its calls show it.

An agent opens a skill by a tool of its own (``Skill``, ``activate_skill``) or by a command that names a path
of the skill's folder. Skills that a program itself puts into its prompts cause no call, so they are not
detected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from skillpress.environments.calls.steps import TraceStep, acted, arguments_of, text_of

_TOOL = re.compile(r"skill", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w-])skills?/(\*|[a-z0-9-]+)(?![\w.-])")


def opened_skills(actions: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """The skills that actions opened, in the order of their first use."""
    found: dict[str, None] = {}
    for action in actions:
        for call in acted(action, "", refused=False):
            found |= dict.fromkeys(name for name in _named(call, names) if name in names)
    return tuple(found)


def _named(call: TraceStep, names: Collection[str]) -> list[str]:
    if call.tool is None:
        return []
    said = [text_of(value) for value in arguments_of(call).values()] or [text_of(call.content)]
    if _TOOL.search(call.tool):
        return [text.strip().rpartition(":")[2].lstrip("/") for text in said]
    paths = [found[1] for text in said for found in _PATH.finditer(text)]
    return sorted(names) if "*" in paths else paths
