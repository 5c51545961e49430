"""Tasks in Harbor's format: how their folders are read, and which of their needs cannot be met here.

``task.toml`` is read in the schema 1.4 and in the older form (``version``, ``memory = "2G"``,
``allow_internet``). Fields that are not known have no effect and are counted.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from skillpress.core.errors import TaskError
from skillpress.environments.harbor.dockerfile import Dockerfile, read_dockerfile
from skillpress.environments.harbor.parameters import BUILD, MACHINE

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
_SIZE = re.compile(r"\s*([0-9.]+)\s*([KMG])B?\s*", re.IGNORECASE)
_FROM_HOST = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
VERIFY_SECONDS = 600.0
"""How long tests may take if the task does not say."""
COMPOSE = ("docker-compose.yaml", "docker-compose.yml")


def _megabytes(value: Any) -> Any:
    """A size such as ``2G`` in megabytes; a number is returned unchanged."""
    if isinstance(value, str):
        if not (found := _SIZE.fullmatch(value)):
            raise ValueError("must be a size such as 2G or 512M")
        return int(float(found[1]) * _UNITS[found[2].upper()])
    return value


Megabytes = Annotated[int, Field(gt=0), BeforeValidator(_megabytes)]
Seconds = Annotated[float, Field(gt=0)]
Network = Literal["no-network", "public", "allowlist"]


class _Table(BaseModel):
    """A table of task.toml. Further fields are kept, so that they can be counted."""

    model_config = ConfigDict(extra="allow", frozen=True)


class _Phase(_Table):
    timeout_sec: Seconds | None = None
    user: str | int | None = None
    network_mode: Network | None = None
    allowed_hosts: list[str] | None = None


class _Verifier(_Phase):
    env: Mapping[str, str] = Field(default_factory=dict)
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Mapping[str, Any] | None = None
    collect: list[Any] = Field(default_factory=list)


class _Environment(_Table):
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: float | None = None
    memory_mb: Megabytes | None = Field(None, validation_alias=AliasChoices("memory_mb", "memory"))
    storage_mb: Megabytes | None = Field(None, validation_alias=AliasChoices("storage_mb", "storage"))
    gpus: int | None = None
    gpu_types: list[str] | None = None
    tpu: Any = None
    mcp_servers: list[Any] = Field(default_factory=list)
    env: Mapping[str, str] = Field(default_factory=dict)
    skills_dir: str | None = None
    healthcheck: Any = None
    workdir: str | None = None
    network_mode: Network | None = None
    allowed_hosts: list[str] | None = None
    allow_internet: bool | None = None


class _Solution(_Table):
    env: Mapping[str, str] = Field(default_factory=dict)


class _Step(_Table):
    """An entry of ``steps``; values that it leaves out are the task's."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "task"
    agent: _Phase = Field(default_factory=_Phase)
    verifier: _Verifier = Field(default_factory=_Verifier)
    min_reward: float | Mapping[str, float] | None = None
    healthcheck: Any = None
    artifacts: list[Any] = Field(default_factory=list)


class TaskToml(_Table):
    """A task.toml."""

    schema_version: str = Field("", validation_alias=AliasChoices("schema_version", "version"))
    task: Mapping[str, Any] = Field(default_factory=dict)
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    agent: _Phase = Field(default_factory=_Phase)
    verifier: _Verifier = Field(default_factory=_Verifier)
    environment: _Environment = Field(default_factory=lambda: _Environment.model_validate({}))
    solution: _Solution = Field(default_factory=_Solution)
    source: str | None = None
    steps: list[_Step] = Field(default_factory=list)
    artifacts: list[Any] = Field(default_factory=list)
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"

    def unknown(self) -> Iterator[str]:
        """The names of fields that are not known here."""
        yield from self.model_extra or ()
        for name in ("agent", "verifier", "environment", "solution"):
            yield from (f"{name}.{field}" for field in getattr(self, name).model_extra or ())
        for step in self.steps:
            yield from (f"steps.{field}" for field in step.model_extra or ())


@dataclass(frozen=True)
class HarborStep:
    """An instruction, and tests of the agent's work: a task without steps, or one of its ``steps``."""

    folder: Path
    settings: _Step
    instruction: str
    tests: tuple[Path, ...]
    """The folders of its tests; files of later folders replace those of earlier ones."""

    @property
    def solution(self) -> Path:
        """The folder with its ``solve.sh``, if there is one."""
        return self.folder / "solution"

    @property
    def workdir(self) -> Path:
        """The folder whose files come into the working directory before the agent, if there is one."""
        return self.folder / "workdir"

    def suffices(self, rewards: Mapping[str, float]) -> bool:
        """Whether the next step may follow: no reward is below its ``min_reward``; an absent one is 0."""
        least = self.settings.min_reward
        wanted = least if isinstance(least, Mapping) else {} if least is None else {"reward": least}
        return all(rewards.get(name, 0.0) >= value for name, value in wanted.items())


@dataclass(frozen=True)
class HarborTask:
    """A task's folder."""

    folder: Path
    settings: TaskToml
    steps: tuple[HarborStep, ...]
    """What the agent does, one after the other."""
    image: Mapping[str, Any] = field(default_factory=dict)
    """The configuration of its built image, in the words of the Open Container Initiative; empty if there is
    none."""

    @property
    def name(self) -> str:
        """The folder's name, which is the task's id."""
        return self.folder.name

    @property
    def context(self) -> Path:
        """The folder that the image is built from."""
        return self.folder / "environment"

    @property
    def solved(self) -> bool:
        """Whether every step has a solution."""
        return all((step.solution / "solve.sh").is_file() for step in self.steps)

    def seconds(self, step: HarborStep, default: float) -> float:
        """How long the agent may take in a step."""
        return step.settings.agent.timeout_sec or self.settings.agent.timeout_sec or default

    def test_seconds(self, step: HarborStep) -> float:
        """How long a step's tests may take."""
        return step.settings.verifier.timeout_sec or self.settings.verifier.timeout_sec or VERIFY_SECONDS

    def all_seconds(self, default: float) -> float:
        """How long all steps may take, with the tests between them."""
        agents = sum(self.seconds(step, default) for step in self.steps)
        return agents + sum(self.test_seconds(step) for step in self.steps[:-1])

    @cached_property
    def dockerfile(self) -> Dockerfile:
        """What its Dockerfile says."""
        return read_dockerfile(self.context / "Dockerfile")

    @property
    def place(self) -> str:
        """The working directory inside."""
        given = self.settings.environment.workdir or self.image.get("WorkingDir")
        return given or self.dockerfile.folder

    def needs(self, root: str) -> set[str]:
        """Names of its needs that cannot be met with this ``environment.root``."""
        settings = self.settings
        environment = settings.environment
        verifiers = [settings.verifier, *(step.verifier for step in settings.steps)]
        phases = [settings.agent, *(step.agent for step in settings.steps), *verifiers]
        network = [environment.network_mode, *(phase.network_mode for phase in phases)]
        users = {phase.user for phase in phases} | {self.dockerfile.user}
        build = self.dockerfile.built if root == MACHINE else ()
        found = {
            "docker-compose": any((self.context / name).exists() for name in COMPOSE),
            "gpus": bool(environment.gpus or environment.tpu),
            "user": bool(users - {None, "root", "0", 0}),
            "network": bool({*network} - {None, "no-network"}) or environment.allow_internet is True,
            "windows": environment.os.lower() != "linux",
            "mcp_servers": bool(environment.mcp_servers),
            "separate verifier": any(
                each.environment_mode == "separate" or each.environment is not None for each in verifiers
            ),
            "verifier.collect": any(each.collect for each in verifiers),
            "healthcheck": environment.healthcheck is not None
            or any(step.healthcheck is not None for step in settings.steps),
            "skills_dir": environment.skills_dir is not None,
            "trajectory.json": (self.folder / "trajectory.json").exists(),
            "docker_image": environment.docker_image is not None and root in (MACHINE, BUILD),
        }
        variables = {f"variable {name}" for name in self._missing()}
        return (
            {name for name, needed in found.items() if needed}
            | variables
            | {f"Dockerfile {name}" for name in build}
        )

    def variables(self, *further: Mapping[str, str]) -> dict[str, str]:
        """Variables of the image, of the environment's table and of further ones; references to the host's
        variables are filled in.
        """
        built = (each.partition("=") for each in self.image.get("Env") or ())
        found = {**self.dockerfile.variables, **{name: value for name, _, value in built}}
        for table in (self.settings.environment.env, *further):
            for name, value in table.items():
                found[name] = _FROM_HOST.sub(lambda said: os.environ.get(said[1], said[2] or ""), value)
        return found

    def _missing(self) -> Iterator[str]:
        given = self.settings
        of_steps = (step.verifier.env for step in given.steps)
        for table in (given.environment.env, given.verifier.env, given.solution.env, *of_steps):
            for value in table.values():
                for name, default in _FROM_HOST.findall(value):
                    if not default and name not in os.environ:
                        yield name


def read_task(folder: Path) -> HarborTask:
    """The task of a folder.

    Raises:
        TaskError: a file is missing or cannot be read; the message names the file, the field and its value.
    """
    file = folder / "task.toml"
    try:
        settings = TaskToml.model_validate(tomllib.loads(file.read_text()))
        steps = tuple(_steps(folder, settings))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, part['loc']))} is {part['input']!r:.80}: {part['msg']}"
            for part in error.errors(include_url=False)
        )
        raise TaskError(f"{file}: {wrong}") from error
    except (OSError, ValueError) as error:
        raise TaskError(f"{file}: the task cannot be read: {error}") from error
    linux = settings.environment.os.lower() == "linux"
    for step in steps if linux else ():
        if not any((tests / "test.sh").is_file() for tests in step.tests):
            missing = step.tests[-1] / "test.sh"
            raise TaskError(f"{missing}: is missing; a task needs it to decide whether it is solved")
    return HarborTask(folder, settings, steps)


def _steps(folder: Path, settings: TaskToml) -> Iterator[HarborStep]:
    """The steps of a task; a task without any is a single one."""
    shared = folder / "tests"
    if not settings.steps:
        if (folder / "steps").is_dir():
            raise ValueError("task.toml has no [[steps]], although there is a folder steps")
        yield HarborStep(folder, _Step(), (folder / "instruction.md").read_text(), (shared,))
    for step in settings.steps:
        own = folder / "steps" / step.name
        tests = tuple(place for place in (shared, own / "tests") if place.is_dir()) or (own / "tests",)
        yield HarborStep(own, step, (own / "instruction.md").read_text(), tests)


def read_tasks(folder: Path) -> list[HarborTask]:
    """The tasks of all folders with a task.toml, sorted by name.

    Raises:
        TaskError: there is none, or one cannot be read.
    """
    folders = sorted(file.parent for file in folder.glob("*/task.toml"))
    if not folders:
        raise TaskError(f"environment.tasks: {folder} has no folder with a task.toml")
    return [read_task(each) for each in folders]
