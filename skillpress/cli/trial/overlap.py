"""Tasks that skills were written from: a trial on them would measure how well the skills fit their own
source.

A task is known by its id, by its text (its instructions), or by its repository. They are looked for in the
skills' own files, in the hashes that ``skillpress skills --write`` saves with each, and in logs (``--logs``).
If a skill has no hashes and no logs are given, the verdict says that nothing was compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from skillpress.core.trajectory import Task
from skillpress.logs.fields import Wanted
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.reports.skill_files.evidence import SkillEvidence, plain_id, repositories, sentences
from skillpress.reports.skill_files.reading import LONGEST_MESSAGE, openings
from skillpress.skills.library.files import EVIDENCE_FILE, SkillFolder

LEAST_ID = 4
"""Shorter ids are not searched for in a skill's own files."""
MOST_READ = 1 << 20
"""The search reads at most this many bytes of a skill's file."""


@dataclass(frozen=True)
class SkillSource:
    """The tasks that skills were written from, as far as files and logs say."""

    words: str
    """The text of the skills' own files, in lower case."""
    evidence: tuple[SkillEvidence, ...] = ()
    """The hashes of the skills and of the logs."""
    unchecked: tuple[str, ...] = ()
    """Skills without hashes, if no logs are given."""

    def knows(self, task: Task, common: Collection[str] = ()) -> str:
        """Why the skills know a task; empty if they do not. ``common`` sentences occur in several tasks, so
        they are ignored.
        """
        name = plain_id(task.task_id)
        if any(one.has(one.tasks, name) for one in self.evidence):
            return "its id is a task of the logs"
        if len(name) >= LEAST_ID and _has_word(self.words, name):
            return "a skill names its id"
        for text in _texts(task):
            own = [sentence for sentence in text if sentence not in common]
            known = [sentence for sentence in own if self._says(sentence)]
            if known and 2 * len(known) >= len(own):
                return f"its text {known[0][:50]!r} is known"
        for repository in _repositories(task):
            if repository in self._named or any(
                one.has(one.repositories, repository) for one in self.evidence
            ):
                return f"its repository {repository} is known"
        return ""

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(repositories(self.words))

    def _says(self, sentence: str) -> bool:
        return sentence in self.words or any(one.has(one.sentences, sentence) for one in self.evidence)


def source_of(
    skills: Sequence[SkillFolder], logs: Sequence[Path], fields: Wanted, most_bad: float
) -> SkillSource:
    """What the skills and the logs say.

    Raises:
        StorageError: a skill's hashes are damaged.
        TracesError: the logs cannot be read.
    """
    words = " ".join(plain_id(_read(path)) for skill in skills for path in skill.files)
    hashed = {skill.name: skill.folder / EVIDENCE_FILE for skill in skills}
    evidence = [SkillEvidence.read(file) for file in hashed.values() if file.is_file()]
    if logs:
        log = read_log(logs, NameProjection(), fields, most_bad)
        said = (opening.said for opening in openings(log, fields))
        evidence.append(SkillEvidence.of((trace.task for trace in log.traces), said))
    unchecked = () if logs else tuple(name for name, file in hashed.items() if not file.is_file())
    return SkillSource(words, tuple(evidence), unchecked)


def known_tasks(source: SkillSource, tasks: Sequence[Task]) -> dict[str, str]:
    """For each task id that the skills know, the reason."""
    counts: Counter[str] = Counter()
    for task in tasks:
        counts.update(set(chain.from_iterable(_texts(task))))
    common = {sentence for sentence, count in counts.items() if count > max(1, len(tasks) / 2)}
    return {task.task_id: why for task in tasks if (why := source.knows(task, common))}


def _texts(task: Task) -> Iterator[list[str]]:
    """The sentences of each text of a task."""
    for key, value in task.spec.items():
        if key != "hidden" and isinstance(value, str):
            yield list(sentences(value[:LONGEST_MESSAGE]))


def _repositories(task: Task) -> Iterator[str]:
    for key, value in task.spec.items():
        if "repo" in key.lower() and isinstance(value, str):
            yield from list(repositories(value))[-1:]


def _has_word(text: str, word: str) -> bool:
    """Whether a text has the word, not as a part of a longer word."""
    place = text.find(word)
    while place >= 0:
        around = text[max(0, place - 1) : place] + text[place + len(word) : place + len(word) + 1]
        if not re.search(r"\w", around):
            return True
        place = text.find(word, place + 1)
    return False


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_READ).decode("utf-8", "replace")
