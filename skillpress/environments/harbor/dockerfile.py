"""The part of a task's Dockerfile that matters here: working directory, variables, and copied files.

Only a build of the image runs ``RUN`` lines; they are only listed here.
"""

from __future__ import annotations

import io
import json
import posixpath
import re
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillpress.core.errors import TaskError

WITHOUT_EFFECT = frozenset({"FROM", "ARG", "EXPOSE", "CMD", "LABEL", "MAINTAINER", "STOPSIGNAL"})
"""Instructions that add nothing to the root. The container's command is not started, because the agent runs
in its place."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of an image that sets none."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


@dataclass(frozen=True)
class Copied:
    """A ``COPY`` line."""

    sources: Sequence[str]
    """Paths or patterns below the folder ``environment``."""
    target: str
    """An absolute path."""
    into: bool
    """Whether the target is a folder that files are copied into."""


@dataclass(frozen=True)
class Dockerfile:
    """A task's Dockerfile."""

    folder: str = "/"
    """The working directory."""
    variables: Mapping[str, str] = field(default_factory=dict)
    copied: Sequence[Copied] = ()
    built: Sequence[str] = ()
    """Instructions whose results only a build of the image has, in order: ``RUN``, ``ADD``."""
    user: str = "root"


def read_dockerfile(path: Path) -> Dockerfile:
    """The Dockerfile; an empty one if there is no file.

    Raises:
        TaskError: it cannot be read.
    """
    if not path.is_file():
        return Dockerfile()
    try:
        lines = _lines(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from error
    folder, user, copied, built = "/", "root", list[Copied](), list[str]()
    variables: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for line in lines:
        name, _, rest = line.partition(" ")
        name = name.upper()
        rest = _filled(rest.strip(), {"PATH": PATH, **arguments, **variables}) if name != "RUN" else rest
        try:
            words = shlex.split(rest) if name in ("ENV", "ARG", "COPY", "ADD") else [rest]
        except ValueError as error:
            raise TaskError(f"{path}: {line!r} cannot be read: {error}") from error
        if name == "FROM":  # a stage of the build: the last one is the image
            folder, user, copied, built, variables = "/", "root", [], [], {}
        elif name == "WORKDIR":
            folder = posixpath.normpath(posixpath.join(folder, rest))
        elif name == "USER":
            user = rest.partition(":")[0]
        elif name == "ENV":
            variables |= _assigned(words)
        elif name == "ARG":
            arguments |= _assigned([word if "=" in word else f"{word}=" for word in words])
        elif name == "COPY" and (found := _copied(rest, words, folder)):
            copied.append(found)
        elif name not in WITHOUT_EFFECT:
            built.append(name)
    return Dockerfile(folder=folder, variables=variables, copied=copied, built=built, user=user)


def archive(copied: Sequence[Copied], context: Path, folders: Sequence[str]) -> bytes:
    """What ``COPY`` lines copy, and empty folders, as a tar archive to be unpacked at ``/``.

    Raises:
        TaskError: a source is missing.
    """
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for place in folders:
            made = tarfile.TarInfo(place.lstrip("/") or ".")
            made.type, made.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(made)
        for line in copied:
            for source in line.sources:
                found = [context] if source.strip("./") == "" else sorted(context.glob(source.lstrip("/")))
                if not found:
                    raise TaskError(f"{context / 'Dockerfile'}: COPY {source}: there is no such file")
                for path in found:
                    inner = (
                        posixpath.join(line.target, path.name)
                        if line.into and path.is_file()
                        else line.target
                    )
                    tar.add(path, inner.lstrip("/"), filter=_of_user_0)
    return held.getvalue()


def folder_archive(folder: Path, place: str) -> bytes:
    """An archive of a folder and its contents that puts it at this place when unpacked at ``/``."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        tar.add(folder, place.lstrip("/"), filter=_of_user_0)
    return held.getvalue()


def _of_user_0(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Make a member belong to user 0, the only user inside."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _lines(text: str) -> list[str]:
    """The instructions, one per line."""
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    kept = re.sub(r"\\[ \t]*\n", " ", kept)
    found, ends = list[str](), ""
    for line in kept.splitlines():
        if ends:
            ends = "" if line.strip() == ends else ends
        elif line.strip():
            found.append(line.strip())
            document = re.search(r"<<-?[\"']?(\w+)", line)
            ends = document[1] if document else ""
    return found


def _copied(rest: str, words: Sequence[str], folder: str) -> Copied | None:
    """A ``COPY`` line; None for one of another image, or of a text in the Dockerfile."""
    flags = [word for word in words if word.startswith("--")]
    if "<<" in rest or any(flag.startswith("--from") for flag in flags):
        return None
    listed = rest.partition("[")
    named = json.loads(f"[{listed[2]}") if listed[1] and rest.endswith("]") else list(words[len(flags) :])
    *sources, target = named
    place = posixpath.normpath(posixpath.join(folder, target))
    into = target.endswith("/") or len(sources) > 1 or place == folder
    return Copied(sources, place, into or any(mark in sources[0] for mark in "*?["))


def _assigned(words: Sequence[str]) -> dict[str, str]:
    if words and "=" not in words[0]:  # ENV NAME VALUE, the old form
        return {words[0]: " ".join(words[1:])}
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[3], found[2] or ""), text)
