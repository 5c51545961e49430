"""Faulty programs with their tests, from any data set.

A program consists of a file that the agent may change, a description, tests that the agent is shown, and
hidden tests that decide. The correct program and the hidden tests stay on the host: neither the task nor the
agent's sandbox ever contains them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.environments.code_repair.parameters import CodeRepairParameters

PARSING = threading.Lock()
"""Held while parsing, since environments run in threads: CPython 3.11 counts the depth of the tree being
built for all threads together, and raises SystemError if two build one at the same time."""
VARIABLE = "SKILLPRESS_CODE_REPAIR"


@dataclass(frozen=True)
class Check:
    """One test: statements that raise an AssertionError if the program is wrong."""

    source: str
    names: tuple[str, ...]
    """The test's names for the function under test."""
    helpers: str = ""
    """Other code of the data set that the test needs."""


@dataclass(frozen=True)
class Program:
    """One faulty program with all its parts."""

    source: str
    """The data set: ``quixbugs`` or ``humanevalfix``."""
    name: str
    """Unique in its data set."""
    entry: str
    """The function under test."""
    faulty: str
    """The text of the file at the start of an episode."""
    correct: str
    """The text of a correct version."""
    description: str
    """A description of what the function should do."""
    visible: tuple[Check, ...]
    """Tests that the agent may run; the verdict depends only on ``hidden``."""
    hidden: tuple[Check, ...]
    """Tests that decide; all of them have to pass."""
    patience: int = 1
    """Factor by which its calls may take longer than those of other programs."""

    @property
    def key(self) -> str:
        """Unique name among all programs."""
        return f"{self.source}/{self.name}"

    @property
    def file(self) -> str:
        """The file that the agent may change."""
        return f"{self.entry}.py"


def find_data(folder: str) -> Path:
    """Return the folder with both data sets.

    Args:
        folder: from the parameters; if empty, the environment variable is used.

    Raises:
        StorageError: it is not named, or a file is missing.
    """
    named = folder or os.environ.get(VARIABLE, "")
    if not named:
        raise StorageError(
            f"environment.data: is empty, and {VARIABLE} is not set; name the folder with the programs"
        )
    for file in (QUIXBUGS, HUMANEVALFIX):
        if not (Path(named) / file).is_file():
            raise StorageError(
                f"environment.data: {named} holds no {file}; docs/code_repair.md says where it comes from"
            )
    return Path(named)


def data_identity(parameters: CodeRepairParameters) -> dict[str, str]:
    """Maps files to hashes of their contents."""
    folder = find_data(parameters.data)
    return {
        name: hashlib.blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()
        for name in (QUIXBUGS, HUMANEVALFIX)
    }


QUIXBUGS, HUMANEVALFIX = "quixbugs_python.tar.xz", "humanevalfix.jsonl"


def all_programs(folder: Path) -> dict[str, Program]:
    """Maps keys to the programs of both data sets, in their order.

    Raises:
        StorageError: a file is damaged or has the wrong contents.
    """
    with PARSING:
        return _read(folder)


@functools.cache
def _read(folder: Path) -> dict[str, Program]:
    from skillpress.environments.code_repair.humanevalfix import read_humanevalfix
    from skillpress.environments.code_repair.quixbugs import read_quixbugs

    programs = [*read_quixbugs(folder / QUIXBUGS), *read_humanevalfix(folder / HUMANEVALFIX)]
    return {program.key: program for program in programs}
