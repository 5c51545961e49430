"""The skill library: what was added to it, when, and because of which failures.

Skills are only ever added (ReuseRL, Appendix B), so the library is the history of its additions, and what it
was after any training step can be read off: all that was added until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema, write_text
from skillpress.core.trajectory import Task

SCHEMA = "skillpress.library/1"
GENERAL = ""
"""The class of skills that are for every task: S_g."""
FILE = "library.json"
"""A policy's folder holds the library that it acts with under this name."""


@dataclass(frozen=True)
class Skill:
    """One rule in words."""

    text: str
    """As text prompts show it; one line."""
    task_class: str
    """The class of tasks that it is for (S_k); :data:`GENERAL` for all (S_g)."""
    uses: int = 0
    """How often the successes that it was made from used its phrase; 0 for a teacher's."""
    phrase: tuple[str, ...] = ()
    """The dictionary's phrase that it puts into words; empty for a teacher's."""
    why: str = ""
    """What made it worth adding, in a sentence."""
    failures: tuple[str, ...] = ()
    """The failed training episodes that it was added for: ``train/17/<task>/<rollout>``."""

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from the library's other skills."""
        return self.task_class, self.text


@dataclass(frozen=True)
class Version:
    """One evolution of the library."""

    step: int
    """The training step after which it was made; prompts show it from the next one on."""
    failures: tuple[str, ...]
    """Every failure that was looked at."""
    added: tuple[Skill, ...]
    """Empty where the failures taught nothing new."""


@dataclass(frozen=True)
class SkillLibrary:
    """S, with its history.

    Raises:
        ValueError: a version is not newer than the one before, or a skill is added twice.
    """

    versions: tuple[Version, ...] = ()

    def __post_init__(self) -> None:
        steps = [version.step for version in self.versions]
        if any(later <= earlier for earlier, later in pairwise(steps)):
            raise ValueError(f"versions must follow each other, got those of steps {steps}")
        names = [skill.name for skill in self.skills]
        if len(set(names)) < len(names):
            raise ValueError("a skill stands in the library twice")

    @property
    def skills(self) -> tuple[Skill, ...]:
        """All of them, the oldest first."""
        return tuple(skill for version in self.versions for skill in version.added)

    def at(self, step: int) -> SkillLibrary:
        """As it stood after a training step."""
        return SkillLibrary(tuple(version for version in self.versions if version.step <= step))

    def lacks(self, skills: Iterable[Skill]) -> list[Skill]:
        """Those that are not in it yet, neither for their class nor for every task."""
        known = {skill.name for skill in self.skills}
        return [s for s in skills if not {s.name, (GENERAL, s.text)} & known]

    def evolved(self, version: Version) -> SkillLibrary:
        """With one version more."""
        return replace(self, versions=(*self.versions, version))


def task_class(task: Task) -> str:
    """What a task-specific skill is for: the last part of the stratum, so that a test task is of the class
    of the training tasks like it (``train/look_at_obj_in_light`` and ``ood/look_at_obj_in_light``)."""
    return task.stratum.rpartition("/")[2]


def write_library(path: str | Path, library: SkillLibrary) -> None:
    """Write a library with its history as JSON, atomically; the same library gives the same bytes."""
    content = {"schema": SCHEMA, "versions": [asdict(version) for version in library.versions]}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_library(path: str | Path) -> SkillLibrary:
    """Read a library.

    Raises:
        StorageError: missing, damaged, or of another schema.
    """
    content = read_schema(path, SCHEMA, "train again")
    try:
        return SkillLibrary(tuple(map(_version, content["versions"])))
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: damaged library ({error}); train again") from error


def _version(content: dict[str, object]) -> Version:
    added = content["added"]
    failures = content["failures"]
    assert isinstance(added, list) and isinstance(failures, list)
    skills = (
        Skill(**{**skill, "phrase": tuple(skill["phrase"]), "failures": tuple(skill["failures"])})
        for skill in added
    )
    return Version(step=int(str(content["step"])), failures=tuple(failures), added=tuple(skills))
