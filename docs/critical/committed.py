"""Committed files of the critical experiment that hold ``{cell: {name: {...}}}``."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json

Entry = TypeVar("Entry")


def read_committed(path: Path, kind: type[Entry], hint: str) -> dict[str, dict[str, Entry]]:
    """The file's entries, empty if there is no file yet.

    Args:
        hint: what a wrong file should hold, or what makes it; the error ends with it.

    Raises:
        StorageError: an entry is wrong; the message names it.
    """
    if not path.exists():
        return {}
    try:
        adapter: TypeAdapter[dict[str, dict[str, Entry]]] = TypeAdapter(dict[str, dict[str, kind]])  # type: ignore[valid-type]
        return adapter.validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StorageError(f"{path}: {place}: {first['msg']}; {hint}") from error
