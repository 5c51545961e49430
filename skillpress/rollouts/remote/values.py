"""Convert Python values to JSON for messages between machines, and back to equal values of the same types.
Pickle would run code that another machine sends. Here a message names classes, and only dataclasses and named
tuples of given packages are filled, without calling any of their methods. All other values are texts,
numbers, booleans, None and containers of these. A JSON array is a tuple, since states nearly always consist
of tuples; every other container is an object with one key that names it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

SHOWN = 200
"""Maximum number of characters of a foreign message that an error repeats."""


class ForeignMessageError(Exception):
    """A message was not written by skillpress."""


def written(value: object) -> str:
    """The value as JSON.

    Raises:
        TypeError: it holds an object of a type that no message can carry; the message names the type.
    """
    return json.dumps(_plain(value))


def read(text: str | bytes, packages: Collection[str]) -> Any:
    """The value in a message.

    Args:
        packages: modules, or packages of modules, whose classes the message may name.

    Raises:
        ForeignMessageError: the message was not written by :func:`written`, or names a class outside these
        packages.
    """
    try:
        return _value(json.loads(text), packages)
    except ForeignMessageError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, ImportError, RecursionError) as error:
        raise ForeignMessageError(
            f"{text[:SHOWN]!r} is not a message of skillpress ({type(error).__name__}: {error})"
        ) from error


def _plain(value: object) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() if type(value) is tuple:
            return [_plain(one) for one in value]
        case list():
            return {"list": [_plain(one) for one in value]}
        case frozenset():
            return {"set": sorted(map(_plain, value), key=json.dumps)}
        case Mapping():
            return {"map": [[_plain(key), _plain(one)] for key, one in value.items()]}
    kind = type(value)
    if (names := _field_names(kind)) is not None:
        filled = {name: _plain(getattr(value, name)) for name in names}
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": filled}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(one) for one in value]  # admissible actions that are computed when they are read
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} cannot be sent to another machine: make it of "
        "dataclasses, texts, numbers, tuples, lists, frozensets and mappings"
    )


def _value(found: Any, packages: Collection[str]) -> Any:
    if isinstance(found, list):
        return tuple(_value(one, packages) for one in found)
    if not isinstance(found, dict):
        return found
    match [*found]:
        case ["list"]:
            return [_value(one, packages) for one in found["list"]]
        case ["set"]:
            return frozenset(_value(one, packages) for one in found["set"])
        case ["map"]:
            return {_value(key, packages): _value(one, packages) for key, one in found["map"]}
        case ["class", "fields"]:
            return _filled(found["class"], found["fields"], packages)
    raise ForeignMessageError(f"{str(found)[:SHOWN]} is not a value of a message")


def _filled(name: str, values: Mapping[str, Any], packages: Collection[str]) -> Any:
    module, _, qualified = name.partition(":")
    if not any(module == package or module.startswith(f"{package}.") for package in packages):
        raise ForeignMessageError(
            f"{name[:SHOWN]} may not be sent here; only classes of {', '.join(packages)} are accepted"
        )
    kind: Any = import_module(module)
    for part in qualified.split("."):
        kind = getattr(kind, part)
    names = _field_names(kind) if isinstance(kind, type) and kind.__module__ == module else None
    if names is None:
        raise ForeignMessageError(f"{name[:SHOWN]} is not a dataclass or named tuple of this module")
    if set(names) != values.keys():
        raise ForeignMessageError(f"{name[:SHOWN]} has other fields than {', '.join(values)[:SHOWN]}")
    found = {key: _value(one, packages) for key, one in values.items()}
    if issubclass(kind, tuple):
        return tuple.__new__(kind, [found[key] for key in names])
    made = object.__new__(kind)  # not kind(...), which would run code of its class
    for key, one in found.items():
        object.__setattr__(made, key, one)
    return made


def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass or a named tuple; None for another class."""
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    if issubclass(kind, tuple):
        named: tuple[str, ...] | None = getattr(kind, "_fields", None)
        return named
    return None
