"""Tasks that skills were written from: a trial on them would say how well the skills fit their own source.

A task is known by its id, by a text of it (its instructions), or by its repository. They are looked for in
the skills' own files, and in the logs that the skills were written from (``--logs``). The evidence that
``skillpress skills --write`` leaves in a skill names the logs by a hash, so other logs are not taken for
them, and logs that are not given are not forgotten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task
from skillpress.logs.fields import Wanted
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.reading import hash_of_logs, openings
from skillpress.skills.library.files import SkillFolder

LEAST_TEXT = 40
"""A text of fewer characters may occur by chance."""
LONGEST_TEXT = 1000
"""More characters of a text are not looked for; a log's first message is cut, too."""
LEAST_ID = 4
"""An id of fewer characters is looked for among the tasks of logs alone."""
MOST_READ = 1 << 20
"""Bytes of a skill's file that are searched."""
_HASH = re.compile(r"\*\*Logs:\*\* .*?\bhash ([0-9a-f]{16})\b")


@dataclass(frozen=True)
class SkillSource:
    """The tasks that skills were written from, as far as files and logs name them."""

    words: str
    """The skills' own files."""
    tasks: frozenset[str] = frozenset()
    """The logs' names for tasks."""
    messages: tuple[str, ...] = ()
    """The first messages of the logs' runs."""
    unmatched: tuple[str, ...] = ()
    """Skills whose evidence names other logs."""

    def knows(self, task: Task, common: Collection[str] = ()) -> str:
        """Why a task is one of them; empty if it is not. Texts that are ``common`` tell no task apart."""
        if task.task_id in self.tasks:
            return "its id is a task of the logs"
        if len(task.task_id) >= LEAST_ID and _has_word(self.words, task.task_id):
            return "a skill names its id"
        for text in _texts(task):
            if text in common:
                continue
            if text in self.words or any(text in message for message in self.messages):
                return f"its text {text[:50]!r} is known"
        for repository in _repositories(task):
            spellings = (repository, repository.replace("/", "__"))
            everywhere = (self.words, *self.messages, *self.tasks)
            if any(_has_word(said, spelled) for spelled in spellings for said in everywhere):
                return f"its repository {repository} is known"
        return ""


def source_of(
    skills: Sequence[SkillFolder], logs: Sequence[Path], fields: Wanted, most_bad: float, allowed: bool
) -> SkillSource:
    """What the skills and the logs say.

    Args:
        allowed: whether tasks that the skills were written from may be played (``--allow-overlap``).

    Raises:
        ParamsError: the skills name logs that are not given.
        TracesError: the logs cannot be read.
    """
    words = " ".join(" ".join(_read(path) for path in skill.files) for skill in skills)
    named = {skill.name: found[1] for skill in skills if (found := _HASH.search(skill.body))}
    if not logs:
        if named and not allowed:
            raise ParamsError(
                f"--logs: is missing; {', '.join(named)} were written from logs with the hash "
                f"{', '.join(sorted(set(named.values())))}: name them, so that their tasks are left out, or "
                "give --allow-overlap"
            )
        return SkillSource(words, unmatched=tuple(named))
    log = read_log(logs, NameProjection(), fields, most_bad)
    given = hash_of_logs(log.files)
    if named and given not in named.values() and not allowed:
        raise ParamsError(
            f"--logs: have the hash {given}, and the skills were written from logs with the hash "
            f"{', '.join(sorted(set(named.values())))}; name those, or give --allow-overlap"
        )
    messages = tuple(opening.message for opening in openings(log, fields) if opening.message)
    tasks = frozenset(trace.task for trace in log.traces if trace.task)
    return SkillSource(
        words,
        tasks=tasks,
        messages=tuple(dict.fromkeys(messages)),
        unmatched=tuple(name for name, digest in named.items() if digest != given),
    )


def known_tasks(source: SkillSource, tasks: Sequence[Task]) -> dict[str, str]:
    """Task id to why the skills know the task."""
    counts = Counter(text for task in tasks for text in set(_texts(task)))
    common = {text for text, count in counts.items() if count > max(1, len(tasks) / 2)}
    return {task.task_id: why for task in tasks if (why := source.knows(task, common))}


def _texts(task: Task) -> Iterator[str]:
    """The task's texts as a log's first message has them."""
    for key, value in task.spec.items():
        if key != "hidden" and isinstance(value, str):
            text = " ".join(value.split())
            if len(text) > LONGEST_TEXT:
                text = text[:LONGEST_TEXT].rpartition(" ")[0]
            text = cleaned(text).strip()
            if len(text) >= LEAST_TEXT:
                yield text


def _repositories(task: Task) -> Iterator[str]:
    spec: Mapping[str, object] = task.spec
    for key, value in spec.items():
        if "repo" in key.lower() and isinstance(value, str):
            parts = value.rstrip("/").removesuffix(".git").replace("__", "/").split("/")
            if len(parts) > 1:
                yield "/".join(parts[-2:])


def _has_word(text: str, word: str) -> bool:
    """Whether a text has the word with nothing of a longer one around it."""
    place = text.find(word)
    while place >= 0:
        around = text[max(0, place - 1) : place] + text[place + len(word) : place + len(word) + 1]
        if not re.search(r"\w", around):
            return True
        place = text.find(word, place + 1)
    return False


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return " ".join(file.read(MOST_READ).decode("utf-8", "replace").split())
