"""The folder of skills: new skills are added, changed skills are updated, and edited files are not touched.

A manifest has a hash of each file as it was written. A skill whose own uses are as before keeps its bytes,
even if other runs have come: its evidence names the logs that it was computed from. Nothing is ever deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os.path import relpath
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema, write_json, write_text
from skillpress.reports.skill_files.choosing import ChosenRoutines, Found
from skillpress.reports.skill_files.document import RoutineSkill, SkillSource, document, name_of
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.teacher import Teacher
from skillpress.skills.dictionary import Skills
from skillpress.skills.library.files import EVIDENCE_FILE

MANIFEST, CHANGES, FILE = ".skillpress.json", "CHANGELOG.md", "SKILL.md"
SCHEMA = "skillpress.skill_files/1"


@dataclass
class Written:
    """What a command did to a folder of skills, by name."""

    names: list[str] = field(default_factory=list)
    """The chosen skills, in their order."""
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Files that were edited, or that skillpress did not write."""
    no_longer: list[str] = field(default_factory=list)
    """Earlier skills that these logs do not choose."""
    dropped: list[str] = field(default_factory=list)
    """Skills in ``no_longer`` that the last logs still chose."""

    def lines(self) -> list[str]:
        """What changed, for the changelog; empty if nothing did."""
        groups = (("Added", self.added), ("Updated", self.updated), ("No longer chosen", self.dropped))
        return [f"- {title}: {', '.join(names)}" for title, names in groups if names]


def names_for(folder: Path, chosen: Sequence[Found]) -> dict[Skills, str]:
    """A name for each routine: the one that the folder has for it, or a new one."""
    before = {_phrase_hash(found.phrase): found.phrase for found in chosen}
    entries = _manifest(folder)
    names = {before[entry["routine"]]: name for name, entry in entries.items() if entry["routine"] in before}
    taken = {*entries}
    for found in chosen:
        if found.phrase not in names:
            names[found.phrase] = name_of(found.phrase, taken)
            taken.add(names[found.phrase])
    return names


def write(
    folder: Path,
    skills: Sequence[RoutineSkill],
    choice: ChosenRoutines,
    source: SkillSource,
    teacher: Teacher | None,
) -> Written:
    """Write or update the skills; a teacher words those that are written.

    Raises:
        StorageError: the manifest is damaged, or a file cannot be read or written.
    """
    entries, done = _manifest(folder), Written()
    for skill in skills:
        path, text = folder / skill.name / FILE, document(skill, choice, source)
        content, before, present = _content(skill), entries.get(skill.name), _read(path)
        done.names.append(skill.name)
        if present is not None and (before is None or _hash(present) != before["file"]):
            done.kept.append(skill.name)
        elif present is not None and before is not None and before["content"] == content:
            done.unchanged.append(skill.name)
            _note_evidence(folder, skill)
        else:
            if teacher is not None:
                others = {*_taken(folder), *entries, *(other.name for other in skills), *done.names}
                skill = teacher.reworded(skill, text, others - {skill.name}, named=before is not None)
                text = document(skill, choice, source)
            write_text(folder / skill.name / FILE, text)
            _note_evidence(folder, skill)
            done.names[-1] = skill.name
            (done.added if before is None else done.updated).append(skill.name)
            routine = _phrase_hash(skill.found.phrase)
            entries[skill.name] = {"routine": routine, "content": content, "file": _hash(text)}
    done.no_longer = sorted(set(entries) - set(done.names))
    done.dropped = [name for name in done.no_longer if entries[name].get("chosen", True)]
    entries = {name: {**entry, "chosen": name not in done.no_longer} for name, entry in entries.items()}
    if done.lines():
        write_json(folder / MANIFEST, {"schema": SCHEMA, "skills": dict(sorted(entries.items()))})
        _tell(folder / CHANGES, done, source)
    return done


def note_page(folder: Path, page: Path) -> None:
    """Record in the manifest the path of these skills' page, relative to the folder, unless it names a
    person.
    """
    entries, place = _manifest(folder), relpath(page, folder)
    if entries and cleaned(place) == place:
        write_json(folder / MANIFEST, {"schema": SCHEMA, "page": place, "skills": entries})


def noted_page(folder: Path) -> Path | None:
    """The page of the skills in a folder; None if it is not a folder of skills, or its manifest names no
    page.

    Raises:
        StorageError: the manifest is damaged.
    """
    if not (folder / MANIFEST).is_file():
        return None
    place = read_schema(folder / MANIFEST, SCHEMA, "name another folder").get("page")
    return folder / place if isinstance(place, str) else None


def texts_of(folder: Path, names: Sequence[str]) -> list[str]:
    """The texts of skills as they are in the folder now."""
    return [_read(folder / name / FILE) or "" for name in names]


def _note_evidence(folder: Path, skill: RoutineSkill) -> None:
    """Write the hashes of a skill's tasks, unless they are there already."""
    path, text = folder / skill.name / EVIDENCE_FILE, skill.evidence.text()
    if _read(path) != text:
        write_text(path, text)


def _taken(folder: Path) -> Iterator[str]:
    """The names of all folders in the skills' folder, including those of other programs."""
    return (path.name for path in folder.iterdir()) if folder.is_dir() else iter(())


def _tell(path: Path, done: Written, source: SkillSource) -> None:
    """Add what changed to the folder's changelog, newest first."""
    head = "# Changes of these skills\n"
    earlier = (_read(path) or head).removeprefix(head)
    title = f"\n## Logs {source.logs}: {source.runs} runs\n\n"
    write_text(path, head + title + "\n".join(done.lines()) + "\n" + earlier)


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / MANIFEST
    if not path.exists():
        return {}
    entries = read_schema(path, SCHEMA, "name another folder").get("skills")
    needed = {"routine", "content", "file"}
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) and needed <= entry.keys() for entry in entries.values()
    ):
        raise StorageError(
            f"{path}: skills: must name routine, content and file of each; name another folder"
        )
    return dict(entries)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _content(skill: RoutineSkill) -> str:
    """A hash of what a skill's files say about its own uses; other runs change nothing in it."""
    steps = [(step.skill, step.form, step.forms) for step in skill.steps]
    success = skill.found.success
    known = (success.won[0], success.runs[0]) if success is not None else None
    counts = (skill.found.uses, len(skill.found.holders), known)
    return _hash(json.dumps([skill.situation.form, steps, counts, skill.failures, skill.evidence.salt]))


def _phrase_hash(phrase: Skills) -> str:
    return _hash(json.dumps(phrase))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
