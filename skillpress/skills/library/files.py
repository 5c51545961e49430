"""Folders of skills for agents: ``NAME/SKILL.md``, by the rules of the format that coding agents share.

A SKILL.md begins with front matter: ``name`` (the folder's), ``description``, and optional keys. What follows
is read by the agent that uses the skill. Other files of the folder belong to the skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.core.lab import ROOT
from skillpress.core.yaml_files import parse_yaml
from skillpress.skills.library.advice import shown
from skillpress.skills.library.library import GENERAL, Skill

FILE, EVIDENCE_FILE = "SKILL.md", ".evidence.json"
"""The skill, and a file of hashes of the tasks that it was written from. Agents do not get the latter."""
LONGEST = {"name": 64, "description": 1024, "compatibility": 500}
"""The format's limits, in characters."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)", re.DOTALL)
_EVIDENCE = re.compile(r"\n## Evidence\n.*\Z", re.DOTALL)
"""The section in which ``skillpress skills --write`` says why a skill exists; it tells an agent nothing."""


@dataclass(frozen=True)
class SkillFolder:
    """One skill: a folder with a SKILL.md."""

    name: str
    description: str
    body: str
    """What SKILL.md says below its front matter."""
    folder: Path
    digest: str
    """A hash of the names and contents of its files; sixteen digits."""

    @property
    def files(self) -> list[Path]:
        """Its files, in order."""
        return _files(self.folder)

    @property
    def as_rule(self) -> Skill:
        """The skill as one of the library, for agents that read no files; without its evidence."""
        told = _EVIDENCE.sub("", f"\n{self.body}").strip()
        return Skill(f"{self.name}: {self.description}\n{told}".strip(), GENERAL)


def read_skill_folders(folder: Path, named: str) -> tuple[SkillFolder, ...]:
    """The skills of a folder, by name. Other files and hidden folders are left out.

    Args:
        named: the parameter or option that names the folder, for messages.

    Raises:
        ParamsError: no skill was found, or one breaks a rule; the message names the file and the field.
    """
    if (folder / FILE).is_file():
        raise ParamsError(f"{named}: {folder} is itself a skill; name the folder that contains it")
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise ParamsError(f"{named}: {folder} cannot be read ({error.strerror}); name a folder") from error
    found = tuple(_skill(path, named) for path in inside)
    if not found:
        raise ParamsError(f"{named}: {folder} has no skill; a skill is a folder NAME with a {FILE}")
    return found


def given_skills(name: str | None, named: str) -> tuple[SkillFolder, ...]:
    """The skills of a folder that parameters name, in the working directory or else in the lab.

    Raises:
        ParamsError: see :func:`read_skill_folders`.
    """
    if name is None:
        return ()
    here = Path.cwd() / name
    return read_skill_folders(here if here.is_dir() else ROOT / name, named)


def as_text(skills: tuple[SkillFolder, ...]) -> str:
    """Skills in the form in which the library shows its own above a prompt; empty without skills."""
    return shown([skill.as_rule for skill in skills])


def _skill(folder: Path, named: str) -> SkillFolder:
    file = folder / FILE
    if link := next((path for path in (folder, *folder.rglob("*")) if path.is_symlink()), None):
        raise ParamsError(f"{named}: {link} is a link; replace it by a copy")
    try:
        text = file.read_text(encoding="utf-8")
        digest = _digest(folder)
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"{named}: {file} cannot be read ({error})") from error
    front = _FRONT.fullmatch(text)
    if front is None:
        raise ParamsError(f"{named}: {file} has no front matter; begin it with --- and a line for each key")
    keys = parse_yaml(front[1], f"{named}: {file}: the front matter")
    if not isinstance(keys, dict):
        raise ParamsError(f"{named}: {file}: the front matter must name keys, such as `name: {folder.name}`")
    if wrong := next(_wrong(keys, folder.name), ""):
        raise ParamsError(f"{named}: {file}: {wrong}")
    return SkillFolder(keys["name"], keys["description"], body=front[2].strip(), folder=folder, digest=digest)


def _wrong(keys: Mapping[Any, Any], folder: str) -> Iterator[str]:
    """What the format's rules refuse."""
    for key, most in LONGEST.items():
        if key not in keys and key == "compatibility":
            continue
        value = keys.get(key)
        if not isinstance(value, str) or not value.strip():
            yield f"{key} is {value!r}, must be a text of 1 to {most} characters"
        elif len(value) > most:
            yield f"{key} has {len(value)} characters, at most {most} are allowed"
    name = str(keys["name"])
    if not _NAME.fullmatch(name):
        yield f"name is {name!r}, must be made of a-z, 0-9 and single hyphens between them"
    if name != folder:
        yield f"name is {name!r}, must be that of its folder, {folder!r}"


def _digest(folder: Path) -> str:
    found = sha256()
    for path in _files(folder):
        found.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != EVIDENCE_FILE)
