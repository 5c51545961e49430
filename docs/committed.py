"""Committed files with what a program measured: a mapping, empty while there is no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json

Content = TypeVar("Content", bound=dict[str, Any])


def read_committed(path: Path, kind: type[Content], hint: str) -> Content:
    """The file's content, empty if there is no file yet.

    Args:
        kind: the type of the whole content, such as ``dict[str, Prediction]``.
        hint: what a wrong file should hold, or what makes it; the error ends with it.

    Raises:
        StorageError: an entry is wrong; the message names it.
    """
    if not path.exists():
        return kind()
    try:
        return TypeAdapter(kind).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StorageError(f"{path}: {place}: {first['msg']}; {hint}") from error
