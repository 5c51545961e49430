"""Tasks in Harbor's format: what their folders say, and which of their needs cannot be met here.

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
    steps: list[Any] = Field(default_factory=list)
    artifacts: list[Any] = Field(default_factory=list)
    multi_step_reward_strategy: str | None = None

    def unknown(self) -> Iterator[str]:
        """The names of fields that are not known here."""
        yield from self.model_extra or ()
        for name in ("agent", "verifier", "environment", "solution"):
            yield from (f"{name}.{field}" for field in getattr(self, name).model_extra or ())


@dataclass(frozen=True)
class HarborTask:
    """A task's folder."""

    folder: Path
    settings: TaskToml
    instruction: str
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
    def solution(self) -> Path:
        """The script that solves it, if there is one."""
        return self.folder / "solution" / "solve.sh"

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
        environment, phases = settings.environment, (settings.agent, settings.verifier)
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
            "separate verifier": settings.verifier.environment_mode == "separate"
            or settings.verifier.environment is not None,
            "verifier.collect": bool(settings.verifier.collect),
            "healthcheck": environment.healthcheck is not None,
            "skills_dir": environment.skills_dir is not None,
            "steps": bool(settings.steps) or (self.folder / "steps").is_dir(),
            "trajectory.json": (self.folder / "trajectory.json").exists(),
            "docker_image": environment.docker_image is not None and root in (MACHINE, BUILD),
        }
        variables = {f"variable {name}" for name in self._missing()}
        return (
            {name for name, needed in found.items() if needed}
            | variables
            | {f"Dockerfile {name}" for name in build}
        )

    def variables(self, *tables: str) -> dict[str, str]:
        """Variables of the image and of tables of task.toml; what they take from the host is filled in."""
        built = (each.partition("=") for each in self.image.get("Env") or ())
        found = {**self.dockerfile.variables, **{name: value for name, _, value in built}}
        for table in ("environment", *tables):
            for name, value in getattr(self.settings, table).env.items():
                found[name] = _FROM_HOST.sub(lambda said: os.environ.get(said[1], said[2] or ""), value)
        return found

    def _missing(self) -> Iterator[str]:
        for table in ("environment", "verifier", "solution"):
            for value in getattr(self.settings, table).env.values():
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
        has_steps = settings.steps or (folder / "steps").is_dir()
        instruction = "" if has_steps else (folder / "instruction.md").read_text()
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, part['loc']))} is {part['input']!r:.80}: {part['msg']}"
            for part in error.errors(include_url=False)
        )
        raise TaskError(f"{file}: {wrong}") from error
    except (OSError, ValueError) as error:
        raise TaskError(f"{file}: the task cannot be read: {error}") from error
    linux = settings.environment.os.lower() == "linux"
    if linux and not has_steps and not (folder / "tests" / "test.sh").is_file():
        raise TaskError(f"{folder / 'tests' / 'test.sh'}: is missing; it says whether the task is solved")
    return HarborTask(folder, settings, instruction)


def read_tasks(folder: Path) -> list[HarborTask]:
    """The tasks of all folders with a task.toml, sorted by name.

    Raises:
        TaskError: there is none, or one cannot be read.
    """
    folders = sorted(file.parent for file in folder.glob("*/task.toml"))
    if not folders:
        raise TaskError(f"environment.tasks: {folder} has no folder with a task.toml")
    return [read_task(each) for each in folders]
