"""What an agent sees of a server's observation, by the field names in the section."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillpress.environments.openenv.connection import ForeignProtocolError
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.text.words import encodable

BESIDE = frozenset({"metadata", "reward", "done"})
"""Fields of an observation that describe it and are not part of its contents."""
LEFT_OUT = "\n[...]\n"
"""Replaces the middle of a text that is too long."""


def seen(parameters: OpenEnvParameters, observation: Mapping[str, Any], named: bool = True) -> str:
    """The text of an observation. A single field is shown alone; several are shown on one line each, with
    their names. If ``named`` is false, all fields are shown, whatever the section names."""
    names = parameters.fields.text if named else []
    if not names:
        text = as_text({name: value for name, value in observation.items() if name not in BESIDE})
    elif len(names) == 1:
        text = as_text(_field(observation, names[0], "text"))
    else:
        text = "\n".join(f"{name}: {as_text(_field(observation, name, 'text'))}" for name in names)
    return shortened(encodable(text), parameters.observation_characters)


def admissible(parameters: OpenEnvParameters, observation: Mapping[str, Any]) -> Sequence[str]:
    """The actions that are possible now, as far as they are known.

    Raises:
        ForeignProtocolError: the field that the section names is missing or not a list.
    """
    name = parameters.fields.admissible
    if not name:
        return tuple(parameters.actions)
    found = _field(observation, name, "admissible")
    if found is None:
        return ()
    if not isinstance(found, list):
        raise ForeignProtocolError(
            f"environment.fields.admissible: {name!r} is {type(found).__name__}, not a list"
        )
    return tuple(encodable(as_text(action)) for action in found)


def told(observation: Mapping[str, Any], name: str, key: str) -> str | None:
    """A field's text; None if it is null. ``name`` is empty if there is no such field."""
    found = _field(observation, name, key) if name else None
    return None if found is None else encodable(as_text(found))


def as_text(value: object) -> str:
    """A text unchanged, null as an empty text, and everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def shortened(text: str, most: int) -> str:
    """The text itself, or its beginning and end if it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    kept = most - len(LEFT_OUT)
    return text[: kept - kept // 2] + LEFT_OUT + text[len(text) - kept // 2 :]


def _field(observation: Mapping[str, Any], name: str, key: str) -> Any:
    if name not in observation:
        raise ForeignProtocolError(
            f"environment.fields.{key}: the server's observation has no {name!r}; it has "
            f"{', '.join(map(repr, observation))}"
        )
    return observation[name]
