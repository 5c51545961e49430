"""The places where coding agents look for skills, and how an episode puts them there.

An isolated program sees each skill read-only, in every place below its folder, which is also its home.
Without isolation the same places of the episode's folder have copies, because the home is the user's own and
stays untouched. An agent that is known by name has them only in its own place, because some agents list all
files in their prompts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillpress.core.storage import make_folder
from skillpress.skills.library.files import EVIDENCE_FILE, FILE, SkillFolder

SELECTED = "skillpress/skills"
"""The key of a task's ``spec`` that names the skills of its episode; without it the episode gets all skills.
Neither the program nor the verifier sees it."""


@dataclass(frozen=True)
class Place:
    """A folder of skills that agents look into."""

    path: str
    """Path below the project's folder, or below the home."""
    project: Sequence[str] = ()
    """The agents that look into it in the project."""
    home: Sequence[str] = ()
    """The agents that look into it in the home."""


PLACES = (
    Place(
        ".agents/skills",
        ("Codex", "OpenCode", "Gemini CLI", "Qwen Code", "Copilot"),
        ("Codex", "OpenCode", "Gemini CLI", "Qwen Code", "Copilot"),
    ),
    Place(".claude/skills", ("Claude Code", "OpenCode", "Copilot"), ("Claude Code", "OpenCode")),
    Place(".codex/skills", ("Codex",), ("Codex",)),
    Place(".config/opencode/skills", home=("OpenCode",)),
    Place(".copilot/skills", home=("Copilot",)),
    Place(".gemini/skills", ("Gemini CLI",), ("Gemini CLI",)),
    Place(".github/skills", ("Copilot",)),
    Place(".hermes/skills", home=("Hermes",)),
    Place(".opencode/skill", ("OpenCode",)),
    Place(".opencode/skills", ("OpenCode",)),
    Place(".qwen/skills", ("Qwen Code",), ("Qwen Code",)),
)


@dataclass(frozen=True)
class MountedSkills:
    """A run's own copy of its skills, which later edits of the originals do not change."""

    folder: Path
    """The copy: ``NAME/SKILL.md``."""
    names: tuple[str, ...]
    places: tuple[Place, ...] = PLACES
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """Maps names to descriptions."""

    @staticmethod
    def of(skills: Sequence[SkillFolder], folder: Path, own: str = "") -> MountedSkills:
        """Copy skills into a new folder, which the user of isolated programs may read. If an agent's ``own``
        place is given, it is the only one."""
        make_folder(folder)
        folder.chmod(0o755)
        for skill in skills:
            target = folder / skill.name
            shutil.copytree(skill.folder, target, ignore=shutil.ignore_patterns(EVIDENCE_FILE))
            for path in (target, *target.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        places = (Place(own, ("it",), ("it",)),) if own else PLACES
        descriptions = {skill.name: " ".join(skill.description.split()) for skill in skills}
        return MountedSkills(folder, tuple(descriptions), places, descriptions)

    def chosen(self, spec: Mapping[str, object]) -> tuple[str, ...]:
        """The skills that a task's episode gets."""
        selected = spec.get(SELECTED)
        return self.names if selected is None else tuple(str(name) for name in _listed(selected))

    def listed(self, names: Sequence[str]) -> str:
        """Words that name the skills to an agent that does not look for any; empty without skills."""
        lines = [f"- {self.places[0].path}/{name}/{FILE}: {self.descriptions[name]}" for name in names]
        return "\n".join(
            ["\n\nBefore you do what a skill describes, read its file:", *lines] if lines else []
        )

    def copy(self, names: Sequence[str], home: Path) -> None:
        """Copy skills to the project's places below an episode's folder."""
        for name, place in ((name, place) for name in names for place in self.places if place.project):
            shutil.copytree(self.folder / name, home / place.path / name, dirs_exist_ok=True)

    def binds(self, names: Sequence[str], home: Path) -> Iterator[tuple[str, Path]]:
        """(path below the home, source) of each read-only mount; makes the folders to mount on.

        Each skill is a separate mount, because some agents write further skills next to them."""
        for name, place in ((name, place) for name in names for place in self.places):
            (home / place.path / name).mkdir(parents=True, exist_ok=True)
            yield f"{place.path}/{name}", self.folder / name


def without_selection(spec: Mapping[str, object]) -> dict[str, object]:
    """A task's ``spec`` as in its own file, without ``SELECTED``."""
    return {key: value for key, value in spec.items() if key != SELECTED}


def _listed(value: object) -> Sequence[object]:
    assert isinstance(value, Sequence) and not isinstance(value, str)
    return value
