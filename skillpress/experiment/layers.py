"""What an experiment's parameters are made of, and where each of them is written.

params.yaml is the lowest layer. Overlays lie over it in order, and the command line's assignments
(``--set training.steps=5``) lie on top. A message about a parameter names the layer whose value counts, with
its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.core.moved import KEYS, with_present_keys
from skillpress.core.yaml_files import line_of, parse_yaml, read_yaml_file

Keys = tuple[str | int, ...]
"""The keys that lead to a value; a number is a place in a list."""
_DOTTED = re.compile(r"\b[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)+")


@dataclass(frozen=True)
class Layer:
    """Sections of parameters, and what gives them."""

    name: str
    """The name in messages: a file's path, or an option with its value."""
    values: Mapping[str, Any]
    file: Path | None = None
    """The YAML file that it was read from; None if it was not."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", with_present_keys(self.values, self.name, note=True))

    def place(self, keys: Keys) -> str | None:
        """Where the layer gives a value, such as ``params/grpo.yaml, line 3``; None if it gives none."""
        if not _holds(self.values, keys):
            return None
        line = None if self.file is None else line_of(self.file, keys)
        return self.name if line is None else f"{self.name}, line {line}"


def file_layer(path: str | Path) -> Layer:
    """The layer of a YAML file.

    Raises:
        ParamsError: the file is missing, not YAML, or holds no mapping.
    """
    values = read_yaml_file(path)
    if not isinstance(values, dict):
        raise ParamsError(f"{path}: holds {type(values).__name__}, must hold sections of parameters")
    return Layer(str(path), values, Path(path))


def assigned_layers(assignments: Sequence[str]) -> list[Layer]:
    """The layers of assignments such as ``sampling.slots=64``, whose values are YAML.

    Raises:
        ParamsError: an assignment has no ``=``, its value is not YAML, or a key is assigned twice.
    """
    layers: dict[str, Layer] = {}
    for assignment in assignments:
        key, value = assignment_of(assignment)
        present = KEYS.get(key, key)
        if present in layers:
            raise ParamsError(
                f"--set {assignment}: {layers[present].name} sets {present} too; keep one of them"
            )
        for part in reversed(key.split(".")):
            value = {part: value}
        layers[present] = Layer(f"--set {assignment}", value)
    return list(layers.values())


def assignment_of(assignment: str) -> tuple[str, Any]:
    """The key and the value of an assignment.

    Raises:
        ParamsError: it has no ``=``, or its value is not YAML.
    """
    key, equals, text = assignment.partition("=")
    if not (equals and all(part.strip() == part != "" for part in key.split("."))):
        raise ParamsError(f"--set {assignment}: must be key=value, such as sampling.slots=64")
    return key, parse_yaml(text, f"--set {assignment}")


def written_in(keys: Keys, message: str, values: Mapping[str, Any], layers: Sequence[Layer]) -> str:
    """Where a mistake is written, in brackets after a space; empty if no layer gives it.

    Args:
        keys: those of the mistake; without any, the ones that the message names count.
        values: the layers together.
    """
    if keys:
        found = _place(keys, values, layers)
        return f" ({found})" if found else ""
    named = dict.fromkeys(_DOTTED.findall(message))
    places = {key: _place(tuple(key.split(".")), values, layers) for key in named if _known(key, values)}
    listed = "; ".join(f"{key}: {place}" for key, place in places.items() if place)
    return f" ({listed})" if listed else ""


def _place(keys: Keys, values: Mapping[str, Any], layers: Sequence[Layer]) -> str | None:
    """The place of the value that counts; of a missing one, that of the innermost section around it."""
    for length in range(len(keys), 0, -1):
        if _holds(values, keys[:length]):
            return next(filter(None, (layer.place(keys[:length]) for layer in reversed(layers))), None)
    return None


def _known(key: str, values: Mapping[str, Any]) -> bool:
    return _holds(values, tuple(key.split(".")))


def _holds(values: Any, keys: Keys) -> bool:
    for key in keys:
        there = isinstance(values, list) and isinstance(key, int) and key < len(values)
        if not (there or (isinstance(values, Mapping) and key in values)):
            return False
        values = values[key]
    return True
