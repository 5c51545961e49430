"""Paths into a record, for ``--messages``, ``--run`` and ``--outcome``.

A path is names joined by dots, ``episode.steps``. A number is a position in a list, ``-1`` the last item, and
``*`` every item of a list or every value of an object. A name may contain dots itself, a JSON text counts as
its value, and ``.`` is the record itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from skillpress.environments.calls.steps import unfolded

HERE = "."
"""The path of the record itself."""
SHOWN = 12
"""Maximum number of paths that a message lists."""
_LEVELS, _EVERY = 5, "*"
_POSITION = re.compile(r"-?\d+")


def values_at(value: Any, path: str) -> Iterator[Any]:
    """Every value at a path that is not null, in order."""
    if path in (HERE, ""):
        if value is not None:
            yield value
        return
    for inside, rest in _inside(value, path):
        yield from values_at(inside, rest)


def value_at(value: Any, paths: Sequence[str]) -> Any:
    """The first value at the first path that has one; None if none has."""
    return next((found for path in paths for found in values_at(value, path)), None)


def _inside(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """(value one step down, the rest of the path)."""
    value = unfolded(value)
    name, _, rest = path.partition(".")
    if isinstance(value, Mapping):
        if name == _EVERY:
            yield from ((inside, rest) for inside in value.values())
            return
        yield from ((value[name], rest) for name, rest in splits(path) if name in value)
    elif isinstance(value, list):
        if name == _EVERY:
            yield from ((inside, rest) for inside in value)
        elif _POSITION.fullmatch(name) and -len(value) <= int(name) < len(value):
            yield value[int(name)], rest


def splits(path: str) -> Iterator[tuple[str, str]]:
    """(name, rest) of a path, the longest name first, since names may contain dots."""
    yield path, ""
    for place in reversed([match.start() for match in re.finditer(r"\.", path)]):
        yield path[:place], path[place + 1 :]


def paths_in(value: Any, level: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything in a record, breadth first; the first item represents a list."""
    value = unfolded(value)
    if level == _LEVELS:
        return
    if isinstance(value, Mapping):
        inside = [(str(name), held) for name, held in value.items()]
    elif isinstance(value, list) and value:
        inside = [(_EVERY, value[0])]
    else:
        return
    yield from inside
    for name, held in inside:
        yield from ((f"{name}.{path}", found) for path, found in paths_in(held, level + 1))


def described(value: Any) -> str:
    """A value in a few words: ``list of 3 (role, content)``, ``object (id, name)``, ``'solved'``."""
    value = unfolded(value)
    if isinstance(value, Mapping):
        return f"object ({', '.join(map(str, list(value)[:5]))})"
    if isinstance(value, list):
        keys = ", ".join(map(str, list(value[0])[:5])) if value and isinstance(value[0], Mapping) else ""
        return f"list of {len(value)}{f' ({keys})' if keys else ''}"
    return repr(value)[:30]


def nothing_at(
    option: str, paths: Sequence[str], record: Any, wanted: str, found: str = "nothing is there"
) -> str:
    """Why a path does not fit a record, with the content of the record and the nearest path that fits.

    Args:
        wanted: ``messages`` for a list of objects, ``value`` for a single value.
        found: what is at the path.
    """
    record = unfolded(record)
    if isinstance(record, list):
        there = f"a {described(record)}"
    elif isinstance(record, Mapping):
        there = ", ".join(f"{name}: {described(held)}" for name, held in list(record.items())[:SHOWN])
        there += " ..." if len(record) > SHOWN else ""
    else:
        there = f"no object but {described(record)}"
    return f"{option} {' or '.join(paths)}: {found}; the record has {there or 'no keys'}" + (
        _nearest(paths[0], record, wanted)
    )


def _nearest(path: str, record: Any, wanted: str) -> str:
    """``; did you mean 'a.b'?`` for the most similar path that fits, or the only one that fits."""
    fits = [
        found for found, value in paths_in(record) if (wanted == "messages") == _is_messages(unfolded(value))
    ]
    if wanted == "value":
        fits = [
            found
            for found, value in paths_in(record)
            if found in fits and not isinstance(unfolded(value), Mapping | list)
        ]
    last = path.rpartition(".")[2]
    near = get_close_matches(path, fits, n=1) or [
        found for found in fits if found.rpartition(".")[2] == last
    ] or [
        found for found in fits if get_close_matches(last, [found.rpartition(".")[2]])
    ]  # fmt: skip
    near = near or (fits[:1] if wanted == "messages" else [])
    return f"; did you mean {near[0]!r}?" if near else ""


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
