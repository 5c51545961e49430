"""Mistakes in parameters, one line each: the place, the value, and what would be right.

Pydantic says what a key must be. The keys of all sections show what a misspelt or misplaced key was meant to
be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillpress.core.errors import did_you_mean
from skillpress.core.names import CodeNotRunError
from skillpress.core.sections import ByName
from skillpress.experiment.layers import Keys, Layer, written_in

Model = type[BaseModel]
MOST = 2**63 - 1
"""The largest number allowed: files hold 64 bits."""
LONGEST_SHOWN = 200
"""The most characters of a value in a message."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def mistakes(
    root: Model, values: Mapping[str, Any], error: ValidationError, layers: Sequence[Layer] = ()
) -> list[str]:
    """One line for each mistake that pydantic found in an experiment's values, with where it is written."""
    lines = []
    for detail in error.errors(include_url=False):
        line = _describe(root, values, dict(detail))
        lines.append(line + written_in(detail["loc"], line, values, layers))
    return lines


def unwritable(values: Mapping[str, Any], layers: Sequence[Layer] = ()) -> Iterator[str]:
    """One line for each number, key or text that our files cannot hold."""
    for keys, why in _unwritable(values, ()):
        yield f"{'.'.join(map(str, keys))}: {why}{written_in(keys, why, values, layers)}"


def _unwritable(values: Any, keys: Keys) -> Iterator[tuple[Keys, str]]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            if not isinstance(key, str):
                yield (*keys, key), f"the key {key!r} is no text; write it in quotes"
            yield from _unwritable(value, (*keys, key))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from _unwritable(value, (*keys, number))
    elif isinstance(values, int) and abs(values) > MOST:
        yield keys, f"is {shown(values)}; must be between -{MOST} and {MOST} (64 bits)"
    elif isinstance(values, float) and not math.isfinite(values):
        yield keys, f"is {values}; must be a finite number"
    elif isinstance(values, str) and not values.isascii() and _SURROGATE.search(values):
        yield keys, f"is {shown(values)}; must not hold half a surrogate pair, which no file can"


def shown(value: Any) -> str:
    """A value for a message, as one readable line."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 20]} ... {text[-15:]}"


def _describe(root: Model, values: Mapping[str, Any], detail: dict[str, Any]) -> str:
    loc: tuple[int | str, ...] = detail["loc"]
    path = ".".join(map(str, loc)) or "(file)"
    if detail["type"] == "extra_forbidden":
        if meant := _meant(root, values, loc):
            return f"{path}: unknown key{meant}"
        return f"{path}: unknown key; remove it or correct its spelling"
    if detail["type"] == "missing":
        place = "the environment's page in docs/" if loc[0] == "environment" else "params.yaml"
        return f"{path}: missing; {place} shows its meaning and an example"
    value, message = detail["input"], detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "literal_error":
        expected = detail["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        message += did_you_mean(value, expected)
    said = "" if isinstance(value, Mapping) else f" is {shown(value)};"
    return f"{path}:{said} {message}"


def _meant(root: Model, values: Mapping[str, Any], loc: Keys) -> str:
    """What an unknown key was probably meant to be, of its own section or of another; empty if nothing."""
    key, around = str(loc[-1]), loc[:-1]
    known = _all_keys(root, values)
    if "." in key and key in known:  # training.steps as one key
        section, _, inside = key.rpartition(".")
        return f"; write {inside} below {section}, as a key of its section"
    near = did_you_mean(key, _keys(root, values, around))
    elsewhere = [one for one in known if one.rpartition(".")[2] == key]
    if elsewhere:
        first = f"{near} Or" if near and around else "; did you mean"
        where = "below its section" if any("." in one for one in elsewhere) else "at the top level"
        return f"{first} {' or '.join(elsewhere)}? Write it {where}"
    return near


def _all_keys(root: Model, values: Any, path: str = "") -> list[str]:
    """The keys of a section and of those inside it, dotted from the root."""
    found = []
    for key, field in root.model_fields.items():
        at = values.get(key) if isinstance(values, Mapping) else None
        section = section_in(field, at)
        found += [f"{path}{key}", *([] if section is None else _all_keys(section, at, f"{path}{key}."))]
    return found


def _keys(root: Model, values: Mapping[str, Any], path: Sequence[int | str]) -> list[str]:
    """The keys of the section at a path; empty if no section is known there."""
    found: Model | None = root
    at: Any = values
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
        field = None if found is None else found.model_fields.get(str(key))
        found = None if field is None else section_in(field, at)
    return [] if found is None else list(found.model_fields)


def section_in(field: FieldInfo, values: Any) -> Model | None:
    """The section that a field holds, even if it may be None or if its values name its class."""
    by_name = next((part for part in field.metadata if isinstance(part, ByName)), None)
    name = values.get("name") if isinstance(values, Mapping) else None
    if by_name is not None and isinstance(name, str) and name in by_name.registry:
        with suppress(CodeNotRunError):
            return by_name.section(name)
    inside = (field.annotation, *get_args(field.annotation))
    return next((one for one in inside if isinstance(one, type) and issubclass(one, BaseModel)), None)
