"""Tasks in Harbor's format as an environment: a program works in the root of its task, then the task's tests
say how well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from skillpress.core.lab import ROOT
from skillpress.core.sections import Positive, PositiveInt
from skillpress.core.trajectory import Task
from skillpress.environments.program.agent_files import AgentFile
from skillpress.environments.program.section import ProgramSection
from skillpress.environments.section import SharedEnvironments, SplitSizes
from skillpress.rollouts.programs.requests import Reply

if TYPE_CHECKING:
    from skillpress.environments.harbor.task_files import HarborTask

ORACLE = "oracle"
"""The agent that runs each task's own solution."""
MACHINE, BUILD = "machine", "build"
"""Values of ``root`` that are not folders."""


class HarborParameters(ProgramSection):
    """Which agent plays, on which tasks, and over which root. Success is a reward of 1 or more from the
    task's tests; the reward, and further numbers of ``reward.json``, are measures."""

    judged: ClassVar[frozenset[str]] = frozenset({"crashed", "out_of_time"})

    tasks: str
    """A folder of tasks, each a folder with ``task.toml``, in the working directory or the lab."""
    root: Annotated[str, Field(min_length=1)] = BUILD
    """Root of the tasks' file system: ``build`` for their images, which buildah builds once; ``machine`` for
    this machine's ``/usr``, for tasks whose Dockerfile runs nothing; or a folder with an unpacked root."""
    leave_out: bool = False
    """Whether tasks with needs that cannot be met here are left out; otherwise they raise an error."""
    play_without: list[str] = Field(default_factory=list)
    """Needs that do not matter, such as ``network``, by the names used when tasks are refused. Tasks are
    played without them."""
    seconds: Positive = 900.0
    """How long the agent may work if a task sets no ``agent.timeout_sec``. Time spent waiting for the model
    or for a processor does not count."""
    memory_mb: PositiveInt = 2048
    """Maximum memory of an episode in megabytes, if the task does not state it."""

    @model_validator(mode="after")
    def _a_command(self) -> Self:
        """Refuse a function, which would run outside of the root."""
        if isinstance(self.run, str):
            raise ValueError(f"run: the function {self.run} would not run in the task's root; name a command")
        return self

    @property
    def folder(self) -> Path:
        """The folder of tasks: in the working directory, else in the lab."""
        here = Path.cwd() / self.tasks
        return here if here.is_dir() else ROOT / self.tasks

    @property
    def title(self) -> str:
        """The folder of tasks, and the agent that plays."""
        return f"{self.folder.name} by {super().title}"

    @property
    def solves(self) -> bool:
        """Whether the tasks' own solutions are run."""
        return self.agent == ORACLE

    @property
    def replays_copies(self) -> bool:
        """Whether the ``COPY`` lines of Dockerfiles are replayed, since the root is not the task's image."""
        return self.root != BUILD

    def task_of(self, name: str) -> HarborTask:
        """The task with this name; ``TaskError`` if it cannot be read."""
        from skillpress.environments.harbor.task_files import read_task

        return read_task(self.folder / name)

    def agent_file(self) -> AgentFile | None:
        return None if self.solves else super().agent_file()

    @property
    def has_oracle(self) -> bool:
        """Whether the agent is ``oracle``: a solution is a program, not a reply to a model's request."""
        return self.solves

    def make_oracle(self) -> Any:
        """Demonstrate with one reply: the solution has already run and asks for nothing."""
        return lambda task, detour_rate, seed: [Reply("")]

    def seconds_of(self, task: Task) -> float:
        return self.task_of(task.task_id).all_seconds(self.seconds)

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.harbor.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.harbor.tasks import check_tasks

        check_tasks(tasks)

    def make_shared(self, slots: int) -> SharedEnvironments:
        from skillpress.environments.harbor.shared import SharedTrials

        return SharedTrials(self)

    def inputs(self) -> Mapping[str, str]:
        from skillpress.environments.harbor.tasks import identities

        return identities(self)

    def dropped(self) -> Mapping[str, Mapping[str, int]] | None:
        from skillpress.environments.harbor.tasks import dropped

        return dropped(self)
