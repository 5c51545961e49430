"""Any program that asks for a model over HTTP, as an environment, with a verifier of yours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from skillpress.core.lab import found_here
from skillpress.core.sections import Positive, PositiveInt
from skillpress.core.trajectory import Task
from skillpress.environments.program.section import ProgramSection, Reference
from skillpress.environments.section import SharedEnvironments, SplitSizes


class ProgramParameters(ProgramSection):
    """Which program plays, on which tasks, and who says whether it succeeded."""

    tasks: str
    """A file of tasks, JSON lines or Parquet, with an ``id`` and any other fields, in the working directory
    or the lab."""
    verify: Reference
    """Who says whether it succeeded: ``function(task, printed, folder, calls)`` returns True, False, or a
    mapping with ``success`` and measures; a command reads the same as JSON from its input and prints such
    JSON."""
    verify_seconds: Positive = 120.0
    """How long the verifier may take for an episode. If it takes longer, the run ends with an error that
    names the task: without a verdict the episode has no reward."""
    seconds: Positive
    """How long the program may work in an episode. Neither the time of the model counts nor that in which the
    program waits for a processor."""
    isolation: Literal["bubblewrap", "gvisor", "none"]
    """Isolation of a command: ``gvisor`` runs it on a kernel of its own and needs ``runsc``. A function runs
    in our worker, so only ``none`` is allowed for it."""
    memory_mb: PositiveInt = 2048
    """The most memory in megabytes that an isolated command and all its processes may use together."""

    @model_validator(mode="after")
    def _of_commands(self) -> Self:
        """Refuse promises that nothing would keep."""
        if isinstance(self.run, str):
            if self.isolation != "none":
                raise ValueError(
                    f"isolation: {self.isolation} is for commands, and run names the function {self.run}, "
                    "which runs in our worker; name a command, or isolation: none"
                )
            if self.files:
                raise ValueError(
                    f"files: {self.files} are copied for commands, and run names the function {self.run}, "
                    "which finds the lab's files where they are; leave them out"
                )
            if self.skills:
                raise ValueError(
                    f"skills: {self.skills} is copied for commands, and run names the function {self.run}, "
                    "which has no folder of its own; name a command"
                )
        if self.pass_variables and self.isolation == "none":
            raise ValueError("pass_variables: without isolation a command gets all variables; leave it out")
        return self

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
