"""Common parts of environments whose agent is a program that calls a model over HTTP: its requests are
observations, and the model's responses are actions (``skillpress/rollouts/programs``)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from skillpress.core.errors import ParamsError
from skillpress.core.interface import Agent, AgentState, Environment, Info, Rendering
from skillpress.core.lab import ROOT, found_here
from skillpress.core.registry import CALL_READERS, lookup
from skillpress.core.sections import NonNegative, PositiveInt, registered
from skillpress.core.trajectory import Task
from skillpress.environments.program.agent_files import AgentFile, read_agent
from skillpress.environments.section import AgentParts, EnvironmentSection, Hosting, Projection
from skillpress.environments.text.prompts import Prompted
from skillpress.rollouts.programs.requests import Reply
from skillpress.rollouts.programs.tool_calls import Reader


def _a_reference(value: Any) -> Any:
    """Return the value; refuse a text that names no function."""
    if isinstance(value, str) and not re.fullmatch(r"[\w.]+:\w+", value):
        raise ValueError(
            "must be module:function, such as my_lab.agent:solve, or a command as a list, such as "
            "[python, agent.py]"
        )
    return value


Command = Annotated[list[str], Field(min_length=1)]
Reference = Annotated[str | Command, BeforeValidator(_a_reference)]
"""``module:function``, importable from the lab's folder, or a command and its arguments."""


class ProgramSection(EnvironmentSection):
    """Which program plays, and which files, skills and variables it finds."""

    hosting: ClassVar[Hosting] = "threads"
    measures: ClassVar[tuple[str, ...] | None] = None
    judged: ClassVar[frozenset[str]] = frozenset()
    """Failures of a program after which its work is judged nevertheless."""

    max_steps: PositiveInt = Field(validation_alias=AliasChoices("max_calls", "max_steps"))
    """T: the maximum number of calls to the model in an episode. A call is a step, so both ``max_calls`` and
    the common ``max_steps`` name it."""
    run: Reference | None = None
    """A function, called as ``function(task, base_url=..., api_key=...)``, or a command and its arguments."""
    agent: str | None = None
    """In place of ``run``: a coding agent by its name (docs/programs.md lists them), or a file that says how
    another agent is started. The tasks have a field ``prompt``."""
    rules: Annotated[str, Field(min_length=1)] | None = None
    """A table of rules that names calls (``environments/calls/rules.py``), in the working directory or the
    lab; null means that no call has a skill."""
    calls: Annotated[str, registered(CALL_READERS)] = "hermes"
    """How the model's chat template writes calls of tools."""
    files: list[str] = Field(default_factory=list)
    """Files and folders of the working directory or the lab that are copied into every episode's folder under
    the same names, like the files that a command names. An isolated command sees nothing else of the lab."""
    pass_variables: list[str] = Field(default_factory=list)
    """Names of this process's environment variables that an isolated command gets as well. Without isolation
    a command gets all of them."""
    gather_seconds: NonNegative | None = None
    """How long a batch of the engine ``local`` waits for further requests after its first. If null, it waits
    until every open episode has asked or ended, so that a repeated experiment has the same batches."""

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        """Refuse several programs, and files outside the working directory and the lab."""
        if (self.run is None) == (self.agent is None):
            raise ValueError("set exactly one of run and agent: it is the program that plays")
        for name in self.files:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise ValueError(f"files: {name!r} must be a path in the working directory or the lab")
        return self

    @property
    def copied(self) -> dict[str, Path]:
        """Maps names in an episode's folder to what is copied there: files that the command names by a
        relative path, and ``files``.

        Raises:
            ParamsError: one of ``files`` does not exist.
        """
        command = self.run if isinstance(self.run, list) else []
        if command and Path(command[0]).parent.name == "bin":  # the program of an installation
            command = command[1:]
        found = {part: path for part in command if (path := _file_of_lab(part))}
        for name in self.files:
            if (there := of_lab(name)) is None:
                raise ParamsError(f"environment.files: {name!r} is neither in {Path.cwd()} nor in {ROOT}")
            found[name] = there
        return found

    @property
    def title(self) -> str:
        """The program's own name."""
        if isinstance(self.run, str):
            return self.run.replace(":", ".")
        return Path(self.agent or (self.run or [""])[-1]).stem

    def agent_file(self) -> AgentFile | None:
        """How the coding agent is started; None if ``run`` names the program."""
        return None if self.agent is None else read_agent(self.agent)

    def surroundings(self) -> Mapping[str, str]:
        agent = self.agent_file()
        return {} if agent is None else {f"environment.agent {self.title}": agent.version()}

    @property
    def gathering(self) -> float | None:
        """Same as ``gather_seconds``."""
        return self.gather_seconds

    def make_reader(self) -> Reader:
        """What reads the calls in the model's responses."""
        found: Reader = lookup(CALL_READERS, self.calls, "environment.calls")
        return found

    @property
    def rules_file(self) -> Path:
        """The table of rules, if there is one: in the working directory, else in the lab."""
        return found_here(self.rules or "")

    @abstractmethod
    def seconds_of(self, task: Task) -> float:
        """How many seconds the program may work on this task."""

    def make(self) -> Environment[Reply]:
        return self.make_shared(1)()

    def make_projection(self) -> Projection:
        from skillpress.environments.program.skills import projection

        return projection(self)

    def explorer_actions(self, info: Info) -> Sequence[Reply]:
        return [Reply("")]

    def prompt(self, state: AgentState) -> str:
        """The part of a request that earlier ones do not have, for displays of an episode as text. The agent
        renders requests with the model's chat template."""
        return state.observation

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        return dict.fromkeys(("requests", "compact"), lambda history: Prompted(self, history=None))

    def make_agent(self, parts: AgentParts) -> Agent:
        from skillpress.rollouts.programs.agent import ProgramAgent

        return ProgramAgent(
            render=parts.encode_request,
            budget=parts.budget,
            read=self.make_reader(),
            decode=parts.decode,
            reward=parts.reward,
            engine=parts.engine,
            sampling=parts.sampling,
        )


def of_lab(name: str) -> Path | None:
    """A file or folder of the working directory, or else of the lab; None if there is none."""
    return next((place for folder in (Path.cwd(), ROOT) if (place := folder / name).exists()), None)


def _file_of_lab(part: str) -> Path | None:
    """The file that a word of a command names by a relative path; None if it names none."""
    try:
        if part.startswith("-") or Path(part).is_absolute() or ".." in Path(part).parts:
            return None
        path = found_here(part)
        return path if path.is_file() else None
    except (OSError, ValueError):  # not a path but a text, such as a program behind -c
        return None
