"""Any program that asks for a model over HTTP, as an environment, with your own verifier."""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from skillpress.core.errors import ParamsError
from skillpress.core.lab import found_here
from skillpress.core.sections import Positive, PositiveInt
from skillpress.core.trajectory import Task
from skillpress.environments.program.section import ProgramSection, Reference, of_lab
from skillpress.environments.section import SharedEnvironments, SplitSizes
from skillpress.rollouts.programs.setting import VendorVariables


class ProgramParameters(ProgramSection):
    """Which program plays, on which tasks, and which verifier decides whether it succeeded."""

    python: str | None = None
    """The interpreter of the function that ``run`` names, such as that of another virtual environment, in the
    working directory or the lab. It needs Python 3.9 or later and no package of skillpress; null uses
    skillpress's own interpreter."""
    tasks: str
    """A file of tasks, JSON lines or Parquet, with an ``id`` and any other fields, in the working directory
    or the lab."""
    verify: Reference
    """Decides whether the program succeeded: ``function(task, printed, folder, calls)`` returns True, False,
    or a mapping with ``success`` and measures; a command reads the same as JSON from its input and prints
    such JSON."""
    verify_seconds: Positive = 120.0
    """How long the verifier may take for an episode. If it takes longer, the run ends with an error that
    names the task: without a verdict the episode has no reward."""
    seconds: Positive
    """How long the program may work in an episode. Time spent waiting for the model or for a processor does
    not count."""
    isolation: Literal["bubblewrap", "gvisor", "none"]
    """``gvisor`` runs a command on a kernel of its own and needs ``runsc``. Isolated functions share a worker
    and its limits."""
    date: Annotated[datetime.date, Field(strict=False)] | None = None
    """The day that an isolated command's clock shows, such as 2026-01-31, starting at noon; null shows the
    true day. It needs libfaketime, under whose version 0.9.10 a Python program may not sleep; static
    programs, such as Codex, find the true day."""
    memory_mb: PositiveInt = 2048
    """Maximum memory in megabytes of an isolated command and all its processes together."""

    @model_validator(mode="after")
    def _of_commands(self) -> Self:
        """Refuse combinations of keys that would have no effect."""
        if isinstance(self.run, str):
            if self.isolation == "gvisor":
                raise ValueError(
                    f"isolation: gvisor works only for commands, but run names the function {self.run}"
                )
            if self.files and self.isolation == "none":
                raise ValueError(
                    f"files: {self.files} are copied only for isolated programs, but the function {self.run} "
                    f"is not "
                    "isolated and finds the lab's files where they are; leave them out"
                )
            if self.skills:
                raise ValueError(
                    f"skills: {self.skills} is copied only for commands, but run names the function "
                    f"{self.run}, "
                    "which has no folder of its own; name a command"
                )
        elif self.python:
            raise ValueError("python: is set, but run is not a function; name the interpreter in the command")
        if self.date and (self.isolation == "none" or isinstance(self.run, str)):
            raise ValueError(
                f"date: {self.date} works only for isolated commands; functions and programs without "
                "isolation use this machine's clock; leave it out"
            )
        if self.pass_variables and self.isolation == "none":
            raise ValueError("pass_variables: without isolation a command gets all variables; leave it out")
        return self

    @property
    def copied(self) -> dict[str, Path]:
        """See ``ProgramSection``. An isolated worker finds the function's module in its home as well."""
        if isinstance(self.run, list) or self.run is None or self.isolation == "none":
            return super().copied
        top = re.split("[.:]", self.run)[0]
        return {name: path for name in (f"{top}.py", top) if (path := of_lab(name))} | super().copied

    @property
    def interpreter(self) -> str:
        """The interpreter of a function.

        Raises:
            ParamsError: ``python`` names no program.
        """
        if self.python is None:
            return sys.executable
        found = found_here(str(Path(self.python).expanduser()))
        if not os.access(found, os.X_OK):
            raise ParamsError(
                f"environment.python: {self.python!r} cannot be started; name an interpreter's path"
            )
        return os.path.abspath(found)  # its links are kept: by its own place it knows its packages

    def vendor_variables(self) -> VendorVariables:
        """This process's variables that the program, against its expectation, does not get; none if it is
        isolated.
        """
        agent = self.agent_file()
        if self.isolation != "none":
            return VendorVariables()
        return VendorVariables.found(os.environ, self.run, None if agent is None else agent.variables)

    def surroundings(self) -> Mapping[str, str]:
        return {**super().surroundings(), **self.vendor_variables().record()}

    @property
    def tasks_file(self) -> Path:
        """The file of tasks: in the working directory, else in the lab."""
        return found_here(self.tasks)

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.program.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.program.tasks import check_tasks

        check_tasks(tasks)

    def seconds_of(self, task: Task) -> float:
        return self.seconds

    def make_shared(self, slots: int) -> SharedEnvironments:
        from skillpress.environments.program.shared import SharedPrograms

        return SharedPrograms(self, slots)

    def inputs(self) -> Mapping[str, str]:
        from skillpress.environments.program.tasks import identities

        return identities(self)
