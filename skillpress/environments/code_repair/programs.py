"""Faulty programs with their tests, whatever data set they come from.

A program is a file that the agent may change, what it should do, tests that the agent is shown, and hidden
tests that decide. The correct program and the hidden tests stay on the host: neither the task nor the
sandbox that the agent acts in ever holds them.
"""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.parsing import PARSING

VARIABLE = "SKILLPRESS_CODE_REPAIR"


@dataclass(frozen=True)
class Check:
    """One test: statements that fail with an AssertionError where the program is wrong."""

    source: str
    names: tuple[str, ...]
    """What it calls the function under test."""
    helpers: str = ""
    """Code of the data set that it needs beside the function."""


@dataclass(frozen=True)
class Program:
    """One faulty program, whole."""

    source: str
    """The data set: ``quixbugs`` or ``humanevalfix``."""
    name: str
    """Unique in its data set."""
    entry: str
    """The function under test."""
    faulty: str
    """The text of the file as the agent finds it."""
    correct: str
    """The text of a correct one."""
    description: str
    """What the function should do."""
    visible: tuple[Check, ...]
    """What the agent may run; the last steps of judging do not look at them."""
    hidden: tuple[Check, ...]
    """All of them have to pass."""
    patience: int = 1
    """How many times longer than others its calls may take."""

    @property
    def key(self) -> str:
        """Names it among all programs."""
        return f"{self.source}/{self.name}"

    @property
    def file(self) -> str:
        """The file that the agent may change."""
        return f"{self.entry}.py"


def find_data(folder: str) -> Path:
    """The folder with both data sets.

    Args:
        folder: of the parameters; empty takes the environment variable.

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
    """File to a hash of what is in it.

    Raises:
        StorageError: a file is missing.
    """
    folder = find_data(parameters.data)
    return {
        name: hashlib.blake2b((folder / name).read_bytes(), digest_size=16).hexdigest()
        for name in (QUIXBUGS, HUMANEVALFIX)
    }


QUIXBUGS, HUMANEVALFIX = "quixbugs_python.tar.xz", "humanevalfix.jsonl"


def all_programs(folder: Path) -> dict[str, Program]:
    """Key to program, of both data sets, in their order.

    Raises:
        StorageError: a file is damaged or not what it should be.
    """
    with PARSING:
        return _read(folder)


@functools.cache
def _read(folder: Path) -> dict[str, Program]:
    from skillpress.environments.code_repair.humanevalfix import read_humanevalfix
    from skillpress.environments.code_repair.quixbugs import read_quixbugs

    programs = [*read_quixbugs(folder / QUIXBUGS), *read_humanevalfix(folder / HUMANEVALFIX)]
    return {program.key: program for program in programs}
