"""Mistakes in parameters, one line each: the place, the value, and what would be right.

Pydantic says what a key must be. The keys of a section show what a misspelt key was meant to be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillpress.core.errors import did_you_mean
from skillpress.core.sections import ByName

Model = type[BaseModel]
MOST = 2**63 - 1
"""The largest number allowed: files hold 64 bits."""
LONGEST_SHOWN = 200
"""The most characters of a value in a message."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def mistakes(root: Model, values: Mapping[str, Any], error: ValidationError) -> list[str]:
    """One line for each mistake that pydantic found in an experiment's values."""
    return [_describe(root, values, dict(detail)) for detail in error.errors(include_url=False)]


def unwritable(values: Any, path: str = "") -> Iterator[str]:
    """One line for each number, key or text that our files cannot hold."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            place = f"{path}.{key}" if path else str(key)
            if not isinstance(key, str):
                yield f"{place}: the key {key!r} is no text; write it in quotes"
            yield from unwritable(value, place)
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from unwritable(value, f"{path}.{number}")
    elif isinstance(values, int) and abs(values) > MOST:
        yield f"{path}: is {shown(values)}; must be between -{MOST} and {MOST} (64 bits)"
    elif isinstance(values, float) and not math.isfinite(values):
        yield f"{path}: is {values}; must be a finite number"
    elif isinstance(values, str) and not values.isascii() and _SURROGATE.search(values):
        yield f"{path}: is {shown(values)}; must not hold half a surrogate pair, which no file can"


def shown(value: Any) -> str:
    """A value for a message, as one readable line."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 20]} ... {text[-15:]}"


def _describe(root: Model, values: Mapping[str, Any], detail: dict[str, Any]) -> str:
    loc: tuple[int | str, ...] = detail["loc"]
    path = ".".join(map(str, loc)) or "(file)"
    if detail["type"] == "extra_forbidden":
        near = did_you_mean(loc[-1], _keys(root, values, loc[:-1]))
        if near:
            return f"{path}: unknown key{near}"
        return f"{path}: unknown key; remove it or correct its spelling"
    if detail["type"] == "missing":
        return f"{path}: missing; params.yaml shows its meaning and default"
    value, message = detail["input"], detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "literal_error":
        expected = detail["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        message += did_you_mean(value, expected)
    said = "" if isinstance(value, Mapping) else f" is {shown(value)};"
    return f"{path}:{said} {message}"


def _keys(root: Model, values: Mapping[str, Any], path: Sequence[int | str]) -> list[str]:
    """The keys of the section at a path; empty if no section is known there."""
    found: Model | None = root
    at: Any = values
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
        field = None if found is None else found.model_fields.get(str(key))
        found = None if field is None else _section(field, at)
    return [] if found is None else list(found.model_fields)


def _section(field: FieldInfo, values: Any) -> Model | None:
    """The section that a field holds, even if it may be None or if its values name its class."""
    by_name = next((part for part in field.metadata if isinstance(part, ByName)), None)
    name = values.get("name") if isinstance(values, Mapping) else None
    if by_name is not None and isinstance(name, str) and name in by_name.registry:
        return by_name.section(name)
    inside = (field.annotation, *get_args(field.annotation))
    return next((one for one in inside if isinstance(one, type) and issubclass(one, BaseModel)), None)
