"""The learned phrases of every training step's dictionary, on disk.

Every step fits its own dictionary, or one for each class of tasks (``skills.dictionaries``), whose phrases
are stored together. A history stores only phrases and their uses; the training curve has the bits. The file
lists every phrase once and steps refer to it by number, so that hundreds of steps take about ten kilobytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema, write_text
from skillpress.skills.dictionary import SkillDictionary, Skills

SCHEMA = "skillpress.history/1"

History = Mapping[int, Mapping[Skills, int]]
"""Training step to the learned phrases of its dictionaries and their uses; steps without a success are
missing."""


class PhraseHistory:
    """The history of a training, which grows by every step with a success."""

    def __init__(self) -> None:
        self.steps: dict[int, dict[Skills, int]] = {}

    def record(self, step: int, dictionaries: Iterable[SkillDictionary]) -> None:
        """Store the learned phrases of a step's dictionaries; the uses of a phrase of several are summed."""
        uses: dict[Skills, int] = {}
        for dictionary in dictionaries:
            for phrase, count in dictionary.learned_counts.items():
                uses[phrase] = uses.get(phrase, 0) + count
        self.steps[step] = uses

    def state_dict(self) -> dict[str, Any]:
        """The history for a checkpoint, as JSON values."""
        return _content(self.steps)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the history that ``state_dict`` returned."""
        self.steps = _history(state)


def write_history(path: str | Path, history: History) -> None:
    """Write a history as JSON, atomically; the same history gives the same bytes."""
    content = {"schema": SCHEMA, **_content(history)}
    write_text(path, json.dumps(content, separators=(",", ":")) + "\n")


def _content(history: History) -> dict[str, Any]:
    number: dict[Skills, int] = {}
    steps = [
        [step, [[number.setdefault(phrase, len(number)), uses] for phrase, uses in history[step].items()]]
        for step in sorted(history)
    ]
    return {"phrases": [list(phrase) for phrase in number], "steps": steps}


def _history(content: Mapping[str, Any]) -> dict[int, dict[Skills, int]]:
    phrases = [tuple(map(str, phrase)) for phrase in content["phrases"]]
    return {int(step): {phrases[n]: int(uses) for n, uses in found} for step, found in content["steps"]}


def read_history(path: str | Path) -> dict[int, dict[Skills, int]]:
    """Read a history.

    Raises:
        StorageError: the file is missing, damaged, or of another schema.
    """
    content = read_schema(path, SCHEMA, "train again")
    try:
        return _history(content)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StorageError(f"{path}: damaged history ({error}); train again") from error
