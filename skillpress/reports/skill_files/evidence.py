"""What a skill was written from, as hashes, so that a trial recognises those tasks without the logs.

``.evidence.json`` next to a SKILL.md has the ids of the tasks whose runs used the routine, the sentences of
their first messages, and the repositories that both name. Each is cleaned like all texts of a skill and
hashed with the file's salt. A reader who guesses an id or a sentence can test the guess.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema
from skillpress.reports.skill_files.private import cleaned

SCHEMA = "skillpress.evidence/1"
DIGITS = 16
"""Hexadecimal digits of each hash, enough that a million hashes and a million questions do not collide."""
LEAST_TEXT, LONGEST_TEXT = 40, 200
"""Shorter sentences are ignored, because they may occur by chance; of longer ones only the beginning is
compared.
"""
_BREAK = re.compile(r"[\r\n]+|(?<=[.!?:;])\s+|<[^<>\n]*>")
_EDGES = " \t\"'`*#>|()[]{}-.!?:;,"
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
_END = re.compile(r"(?:\.git|-\d+)$")
"""``owner__name-17`` is an issue of a repository."""


def plain_id(task: str) -> str:
    """A task's id as it is compared."""
    return " ".join(task.split()).casefold()


def sentences(text: str) -> Iterator[str]:
    """The sentences by which a text is recognised inside another one."""
    for part in _BREAK.split(cleaned(text)):
        words = plain_id(part).strip(_EDGES)
        if len(words) >= LEAST_TEXT:
            yield words[:LONGEST_TEXT]


def repositories(text: str) -> Iterator[str]:
    """What may be ``owner/name`` in a text, in order; other paths have such pairs, too."""
    for found in _PATH.finditer(cleaned(text).casefold().replace("__", "/")):
        parts = [_END.sub("", part.strip(".")) for part in found[0].split("/")]
        yield from ("/".join(pair) for pair in itertools.pairwise(parts) if all(pair))


@dataclass(frozen=True)
class SkillEvidence:
    """Hashes of a skill's task ids, sentences and repositories."""

    salt: str
    tasks: frozenset[str]
    sentences: frozenset[str]
    repositories: frozenset[str]

    @staticmethod
    def of(tasks: Iterable[str], messages: Iterable[str]) -> SkillEvidence:
        """The evidence of runs, from the logs' names for their tasks and their first messages with all line
        breaks. The salt follows from what is hashed, so the same runs give the same file."""
        named, said = {task for task in tasks if task}, set(messages)
        plain = (
            {plain_id(task) for task in named},
            {sentence for text in said for sentence in sentences(text)},
            {pair for text in named | said for pair in repositories(text)},
        )
        salt = sha256(json.dumps([sorted(kind) for kind in plain]).encode()).hexdigest()[:DIGITS]
        return SkillEvidence(salt, *(frozenset(_hash(salt, text) for text in kind) for kind in plain))

    @staticmethod
    def read(file: Path) -> SkillEvidence:
        """The evidence in a file.

        Raises:
            StorageError: the file is damaged, or another version wrote it.
        """
        content = read_schema(file, SCHEMA, "write the skills again")
        salt = content.get("salt")
        kinds: list[Any] = [content.get(field.name) for field in fields(SkillEvidence)[1:]]
        if not isinstance(salt, str) or not all(
            isinstance(kind, list) and all(isinstance(entry, str) for entry in kind) for kind in kinds
        ):
            raise StorageError(
                f"{file}: salt must be a text, the rest lists of hashes; write the skills again"
            )
        return SkillEvidence(salt, *(frozenset(kind) for kind in kinds))

    def text(self) -> str:
        """The file: a hash in each line, so that differences can be read."""
        kinds = {field.name: sorted(getattr(self, field.name)) for field in fields(self)[1:]}
        return json.dumps({"schema": SCHEMA, "salt": self.salt, **kinds}, indent=1) + "\n"

    def has(self, kind: frozenset[str], text: str) -> bool:
        """Whether a text's hash is in a set such as ``self.tasks``."""
        return _hash(self.salt, text) in kind


def _hash(salt: str, text: str) -> str:
    return sha256(f"{salt}\0{text}".encode("utf-8", "replace")).hexdigest()[:DIGITS]
