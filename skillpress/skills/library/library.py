"""The skill library: which skills were added, when, and because of which failures.

Skills are only ever added (ReuseRL, Appendix B), so the library is the history of its additions. Its state
after any training step is everything added until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema, write_text
from skillpress.core.trajectory import Task

SCHEMA = "skillpress.library/1"
GENERAL = ""
"""The class of skills that suit every task: S_g."""
FILE = "library.json"
"""The file in a policy's folder that holds the policy's library."""


@dataclass(frozen=True)
class Skill:
    """One rule in words."""

    text: str
    """The skill in one line, as text prompts show it."""
    task_class: str
    """The class of tasks that the skill is for (S_k); :data:`GENERAL` for all (S_g)."""
    uses: int = 0
    """How often the successes that it was made from used its phrase; 0 for a teacher's skill."""
    phrase: tuple[str, ...] = ()
    """The dictionary's phrase that the skill puts into words; empty for a teacher's skill."""
    why: str = ""
    """The reason for adding it, in a sentence."""
    failures: tuple[str, ...] = ()
    """The failed training episodes that led to it: ``train/17/<task>/<rollout>``."""

    @property
    def name(self) -> tuple[str, str]:
        """The key that separates it from the library's other skills."""
        return self.task_class, self.text


@dataclass(frozen=True)
class Version:
    """One evolution of the library."""

    step: int
    """The training step that it was made after; prompts show it from the next step on."""
    failures: tuple[str, ...]
    """All failures of this step, whether or not they led to a skill."""
    added: tuple[Skill, ...]
    """The new skills; empty if the failures taught nothing new."""


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
            raise ValueError(f"versions of steps {steps}: each must be of a later step than the one before")
        names = [skill.name for skill in self.skills]
        if len(set(names)) < len(names):
            raise ValueError("the library holds a skill twice")

    @property
    def skills(self) -> tuple[Skill, ...]:
        """All skills, the oldest first."""
        return tuple(skill for version in self.versions for skill in version.added)

    def at(self, step: int) -> SkillLibrary:
        """The library after a training step."""
        return SkillLibrary(tuple(version for version in self.versions if version.step <= step))

    def lacks(self, skills: Iterable[Skill]) -> list[Skill]:
        """The given skills that it does not hold yet, neither for their class nor for every task."""
        known = {skill.name for skill in self.skills}
        return [s for s in skills if not {s.name, (GENERAL, s.text)} & known]

    def evolved(self, version: Version) -> SkillLibrary:
        """The library with one more version."""
        return replace(self, versions=(*self.versions, version))


def task_class(task: Task) -> str:
    """The class of a task-specific skill: the last part of the stratum. A test task is thus in the same class
    as the training tasks like it (``train/look_at_obj_in_light`` and ``ood/look_at_obj_in_light``)."""
    return task.stratum.rpartition("/")[2]


def write_library(path: str | Path, library: SkillLibrary) -> None:
    """Write a library with its history as JSON, atomically; the same library gives the same bytes."""
    content = {"schema": SCHEMA, **library_state(library)}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_library(path: str | Path) -> SkillLibrary:
    """Read a library.

    Raises:
        StorageError: the file is missing, damaged, or of another schema.
    """
    content = read_schema(path, SCHEMA, "train again")
    try:
        return library_of(content)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: damaged library ({error}); train again") from error


def library_state(library: SkillLibrary) -> dict[str, Any]:
    """A library with its history as JSON values."""
    return {"versions": [asdict(version) for version in library.versions]}


def library_of(state: Mapping[str, Any]) -> SkillLibrary:
    """The library that :func:`library_state` described."""
    return SkillLibrary(tuple(map(_version, state["versions"])))


def _version(content: dict[str, object]) -> Version:
    added = content["added"]
    failures = content["failures"]
    assert isinstance(added, list) and isinstance(failures, list)
    skills = (
        Skill(**{**skill, "phrase": tuple(skill["phrase"]), "failures": tuple(skill["failures"])})
        for skill in added
    )
    return Version(step=int(str(content["step"])), failures=tuple(failures), added=tuple(skills))
