"""Files that are either whole or absent.

A file is written beside its destination, flushed to the disk and renamed to the destination. So a reader, or
a run that resumes after ``kill -9``, never sees half a file.
"""

from __future__ import annotations

import errno
import glob
import itertools
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from skillpress.core.errors import USER_ERRNOS, StorageError

FULL_BYTES = 65536
"""A disk with fewer free bytes than this counts as full."""


@contextmanager
def named_disk_errors(destination: Path) -> Iterator[None]:
    """Turn errors from a full disk or missing permission into a ``StorageError`` that names the file.

    Errors that may disappear by themselves (a network disk that does not answer) stay as the system raised
    them. Libraries in Rust or C++ hide the system's reason behind errors of their own; for them a disk that
    is full at this moment is taken as the reason.
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


def make_folder(folder: Path, private: bool = False) -> None:
    """Make a folder and those above it, unless they exist.

    Args:
        private: no other user can enter the folder, if it is made here. One that exists keeps its mode: its
            owner may have opened it on purpose.

    Raises:
        StorageError: a file is in the way, or the folder cannot be made there.
    """
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in USER_ERRNOS | {errno.EEXIST}:
            raise
        raise StorageError(f"{folder}: {_why_no_folder(folder, error)}") from error


def private(path: str, flags: int) -> int:
    """An ``opener`` for Python's ``open``: no other user can read a file that it makes."""
    return os.open(path, flags, 0o600)


def make_private_file(file: Path) -> None:
    """Make an empty file that no other user can read, unless it exists. SQLite makes its database in an empty
    file, and gives the files beside it the same mode."""
    with named_disk_errors(file), suppress(FileExistsError), open(file, "xb", opener=private):
        pass


def why_not_writable(folder: Path) -> str:
    """Why a folder, which may not exist yet, cannot be written; empty if it can. It makes no folder:
    it tries with a temporary one, which it removes."""
    above = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    try:
        os.rmdir(tempfile.mkdtemp(dir=above, prefix=".skillpress."))
    except OSError as error:
        return _why_no_folder(folder, error)
    return ""


def _why_no_folder(folder: Path, error: OSError) -> str:
    files = [place for place in (folder, *folder.parents) if os.path.lexists(place) and not place.is_dir()]
    if files:
        return f"cannot be a folder, since {files[0]} is a file; name another"
    above = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
    return f"cannot be written: {above}: {error.strerror or error}"


@contextmanager
def atomic_path(destination: str | Path, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path; on a clean exit fsync it and rename it to ``destination``.

    Args:
        private: no other user can read the file, nor enter its folder if that is made here.

    Raises:
        StorageError: no space or no permission; ``destination`` is unchanged.
    """
    destination = Path(destination)
    make_folder(destination.parent, private)
    with named_disk_errors(destination):
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        with named_disk_errors(destination):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o600 if private else 0o644)
            temporary.replace(destination)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(destination: str | Path) -> Iterator[Path]:
    """Yield a temporary folder; on a clean exit it replaces the whole of ``destination``."""
    destination = Path(destination)
    with _folder_beside(destination) as temporary:
        yield temporary
        _settle(temporary)
        _replace_folder(temporary, destination)


@contextmanager
def directory_made_once(destination: str | Path) -> Iterator[Path]:
    """Yield a temporary folder; on a clean exit it becomes ``destination``, unless that exists by then.

    For folders whose name identifies their contents. If two processes make one at the same time, the
    second deletes its own, so that a folder is never replaced while a reader uses it.
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
    make_folder(destination.parent)
    with named_disk_errors(destination):
        temporary = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}."))
    try:
        with named_disk_errors(destination):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Flush the folder's files to the disk and let others read it."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as written:
                os.fsync(written.fileno())
    folder.chmod(0o755)


def sweep(destination: str | Path) -> None:
    """Remove what killed processes left beside ``destination``: half-written files and folders, or ones they
    were about to delete. Call it only while no other process writes ``destination``."""
    destination = Path(destination)
    for left in destination.parent.glob(f".{glob.escape(destination.name)}.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def private_folder(folder: Path) -> Path:
    """Make a folder that no other user can enter, or check that an existing one is such a folder. For places
    among temporary files whose name other users can guess: they could have made it first, and filled it.

    Raises:
        StorageError: it belongs to another user, is a link, or others may enter it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return folder
    raise StorageError(
        f"{folder}: has owner {found.st_uid} and mode {stat.filemode(found.st_mode)}, so another user may "
        f"have put files there; remove it, since only user {os.getuid()} may be able to enter it"
    )


def remove_tree(folder: Path) -> None:
    """Remove a folder with content of any depth, any names and any permissions. Others may remove parts of it
    meanwhile, and must not write there. Nothing happens if the folder is gone.

    ``shutil.rmtree`` calls itself for every level and fails on a thousand of them. Here folders move up to
    the top before they are emptied, so neither the stack nor the length of a path limits the depth.
    """
    names = (f".{uuid4().hex}.{number}" for number in itertools.count())
    with suppress(FileNotFoundError):
        folder.chmod(0o700)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            left = os.listdir(top)
            while left:
                with suppress(FileNotFoundError):  # another was faster
                    left += _removed(top, left.pop(), names)
        finally:
            os.close(top)
        folder.rmdir()


def _removed(top: int, name: str, names: Iterator[str]) -> list[str]:
    """Remove a file, or a folder whose inner folders are moved to ``top`` first. Returns their names there,
    and the folder's own name if something was moved into it meanwhile."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return []
    left = []
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for entry in os.listdir(inner):
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(os.stat(entry, dir_fd=inner, follow_symlinks=False).st_mode):
                    os.chmod(entry, 0o700, dir_fd=inner)
                    left.append(next(names))
                    os.rename(entry, left[-1], src_dir_fd=inner, dst_dir_fd=top)
                else:
                    os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    try:
        os.rmdir(name, dir_fd=top)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        left.append(name)
    return left


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
    """Write JSON atomically, indented and with a final newline, so that diffs are readable."""
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
    except (ValueError, RecursionError) as error:  # ValueError: the text is not JSON, or not UTF-8
        raise StorageError(
            f"{source}: not valid JSON ({error}); name another file, or make it again with the command or "
            "stage that made it"
        ) from error


def read_schema(source: str | Path, schema: str, remedy: str) -> dict[str, Any]:
    """Read a JSON object that names its schema.

    Args:
        remedy: how to make the file again, such as ``train again``.

    Raises:
        StorageError: the file is missing, is not JSON, or has another schema.
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
