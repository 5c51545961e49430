"""The paths of a log that the user gives, as options or as a YAML file.

    skillpress skills log.jsonl --messages steps.-1.chat --outcome reward
    skillpress skills log.json --run trajectories --messages messages --outcome reward
    skillpress skills log.parquet --paths mine.yaml

An option overrides the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from skillpress.core.errors import did_you_mean
from skillpress.core.yaml_files import read_yaml_file
from skillpress.logs.fields import success_field
from skillpress.logs.own_items import SPEAKERS, Items
from skillpress.logs.read_by_paths import Paths
from skillpress.logs.trace import TracesError

_TEXTS = tuple(each.name for each in fields(Paths) if each.name not in ("where", "item", "source"))
_ITEM = tuple(each.name for each in fields(Items) if each.name != "roles")


def paths_of(file: Path | None, messages: str | None, run: str | None, outcome: str | None) -> Paths | None:
    """The paths that ``--paths``, ``--messages``, ``--run`` and ``--outcome`` give; None if none is given.

    Raises:
        TracesError: they are incomplete, or the file is not such a table.
    """
    given = {"messages": messages, "run": run, "outcome": outcome}
    named = {name: (text,) for name, text in given.items() if text is not None}
    if file is None and not named:
        return None
    for name, (text,) in named.items():
        if not text.strip():
            raise TracesError(f"--{name} is empty; name a path, such as episode.steps")
    found = Paths() if file is None else _read(file)
    found = replace(
        found,
        messages=named.get("messages", found.messages),
        run=named.get("run", found.run),
        outcome=named.get("outcome", found.outcome),
    )
    if not found.messages:
        missing = "--" + next(iter(named)) if file is None else str(file)
        raise TracesError(
            f"{missing}: messages are missing; --messages PATH says where a run's messages or calls are "
            "(logs of a known format need no paths, and --success FIELD names their outcome)"
        )
    for text in found.outcome:
        success_field(text)
    return found


def _read(file: Path) -> Paths:
    content = read_yaml_file(file)
    known = (*_TEXTS, "where", "item")
    if not isinstance(content, Mapping):
        raise TracesError(
            f"{file}: must be a table of paths, such as messages: steps; it may contain {known}"
        )
    for key in content:
        if key not in known:
            raise TracesError(
                f"{file}: {key} is unknown; a table of paths may contain {', '.join(known)}"
                f"{did_you_mean(key, known)}"
            )
    paths = {name: _texts(content[name], f"{file}: {name}") for name in _TEXTS if name in content}
    where = {
        path: _pattern(text, f"{file}: where: {path}")
        for path, text in _table(content.get("where", {}), f"{file}: where").items()
    }
    item = _item(content["item"], f"{file}: item") if "item" in content else None
    return Paths(**paths, where=where, item=item, source=f"{file}: ")


def _item(content: Any, place: str) -> Items:
    table = _table(content, place)
    for key in table:
        if key not in (*_ITEM, "roles"):
            raise TracesError(
                f"{place}: {key} is unknown; an item may contain {', '.join((*_ITEM, 'roles'))}"
                f"{did_you_mean(key, (*_ITEM, 'roles'))}"
            )
    roles = _table(table.get("roles", {}), f"{place}: roles")
    for value, role in roles.items():
        if role not in SPEAKERS:
            raise TracesError(f"{place}: roles: {value}: {role!r} must be one of {', '.join(SPEAKERS)}")
    paths = {name: _texts(table[name], f"{place}: {name}") for name in _ITEM if name in table}
    return Items(**paths, roles=roles)


def _table(content: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
        raise TracesError(f"{place}: {content!r:.60} must be a mapping")
    return content


def _texts(value: Any, place: str) -> tuple[str, ...]:
    held = value if isinstance(value, list) else [value]
    if not held or not all(isinstance(text, str) and text.strip() for text in held):
        raise TracesError(f"{place}: {value!r:.60} must be a path, or a list of paths")
    return tuple(held)


def _pattern(text: Any, place: str) -> re.Pattern[str]:
    try:
        return re.compile(str(text))
    except re.error as error:
        raise TracesError(f"{place}: {text!r} is not a regular expression: {error}") from error
