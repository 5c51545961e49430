"""Files that are either whole or absent.

A file is written beside its destination, flushed to the disk and renamed over it, so that a reader
(or a run that resumes after ``kill -9``) never sees half of one.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillpress.core.errors import USER_ERRNOS, StorageError

FULL_BYTES = 65536
"""A disk with less than this left is full."""


@contextmanager
def named_disk_errors(destination: Path) -> Iterator[None]:
    """Turn what fails for want of space or permission into a ``StorageError`` that names the file.

    What may pass by itself (a network disk that does not answer) stays the system's own error.
    Libraries that write from Rust or C++ hide the system's reason behind errors of their own; that
    the disk is full at this moment gives it away.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno not in USER_ERRNOS:
            raise
        raise StorageError(_explain(destination, error)) from error
    except Exception as error:
        if shutil.disk_usage(destination.parent).free < FULL_BYTES:
            raise StorageError(_no_space(destination)) from error
        raise


@contextmanager
def atomic_path(destination: str | Path) -> Iterator[Path]:
    """Yield a temporary path; on a clean exit fsync it and rename it over ``destination``.

    Raises:
        StorageError: no space or no permission; ``destination`` is left as it was.
    """
    destination = Path(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with named_disk_errors(destination):
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        with named_disk_errors(destination):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o644)
            temporary.replace(destination)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(destination: str | Path) -> Iterator[Path]:
    """Yield a temporary folder; on a clean exit it replaces ``destination`` as a whole."""
    destination = Path(destination)
    with _folder_beside(destination) as temporary:
        yield temporary
        _settle(temporary)
        _replace_folder(temporary, destination)


@contextmanager
def directory_made_once(destination: str | Path) -> Iterator[Path]:
    """Yield a temporary folder; on a clean exit it becomes ``destination``, unless that is there by then.

    For folders whose name says what is in them: of two processes that make one at the same time, the
    second throws its own away, so that nothing is ever replaced under a reader.
    """
    destination = Path(destination)
    with _folder_beside(destination) as temporary:
        yield temporary
        _settle(temporary)
        try:
            temporary.rename(destination)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


@contextmanager
def _folder_beside(destination: Path) -> Iterator[Path]:
    destination.parent.mkdir(parents=True, exist_ok=True)
    with named_disk_errors(destination):
        temporary = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}."))
    try:
        with named_disk_errors(destination):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Bring its files to the disk and let others read it."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as written:
                os.fsync(written.fileno())
    folder.chmod(0o755)


def sweep(destination: str | Path) -> None:
    """Remove what killed processes left beside ``destination``, half-written or on its way out; only
    while nobody else writes it."""
    destination = Path(destination)
    for left in destination.parent.glob(f".{glob.escape(destination.name)}.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _replace_folder(temporary: Path, destination: Path) -> None:
    if not destination.exists():
        temporary.replace(destination)
        return
    retired = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}."))
    destination.replace(retired / "old")
    temporary.replace(destination)
    shutil.rmtree(retired)


def write_text(destination: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(destination) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(destination: str | Path, value: Mapping[str, Any] | list[Any]) -> None:
    """Write JSON atomically, indented and with a final newline so that it diffs well."""
    write_text(destination, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(source: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        StorageError: the file is missing, cannot be read or is not JSON.
    """
    try:
        return json.loads(Path(source).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StorageError(f"{source}: no such file; run the stage that makes it") from error
    except OSError as error:
        if error.errno not in USER_ERRNOS:
            raise
        raise StorageError(f"{source}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or not UTF-8
        raise StorageError(
            f"{source}: not valid JSON ({error}); name another file, or make it again with the command or "
            "stage that made it"
        ) from error


def read_schema(source: str | Path, schema: str, remedy: str) -> dict[str, Any]:
    """Read a JSON object that says which schema it follows.

    Args:
        remedy: how to make the file anew, such as ``train again``.

    Raises:
        StorageError: it is missing, no JSON, or follows another schema.
    """
    content = read_json(source)
    found = content.get("schema") if isinstance(content, dict) else None
    if found != schema:
        raise StorageError(f"{source}: schema is {found!r}, this version reads {schema!r}; {remedy}")
    return dict(content)


def _explain(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _no_space(path)
    return f"{path}: cannot be written: {error.strerror or error}"


def _no_space(path: Path) -> str:
    return f"{path}: no space left on the device; free some and run again (nothing was replaced)"
