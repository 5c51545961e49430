"""Coding agents by name: how each is started, as a file of data.

``environment.agent`` names one of the files in ``agents/``, or a file of the same form, in the working
directory or the lab, so a new agent needs only one new file. In its texts ``{prompt}`` means the task's field
``prompt``, ``{base_url}`` and ``{key}`` the model's address and key, ``{home}`` the episode's folder, and
``{skills}`` words that name the mounted skills, for an agent that does not look for skills.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from pydantic import Field, ValidationError

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.core.lab import found_here
from skillpress.core.sections import Section
from skillpress.core.yaml_files import read_yaml_file

SHIPPED = Path(__file__).with_name("agents")
VERSION_SECONDS = 60.0
"""How long an agent may take to say its version."""


class AgentFile(Section):
    """One agent's file."""

    tried: str
    """The package and the version that were tried."""
    install: str
    """The command that installs it."""
    package: str | None = None
    """The Python package whose version counts, if the program does not support ``--version``."""
    run: list[str] = Field(min_length=1)
    """The program and its arguments."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables."""
    files: Mapping[str, str] = Field(default_factory=dict)
    """Maps paths below the agent's home to the texts of files that are written before it starts."""

    skills: str = ""
    """Where it looks for skills, below its working directory; if empty, they are mounted in every known
    place."""
    side_calls: Mapping[str, str] = Field(default_factory=dict)
    """Maps the name of a side call, such as ``title``, to words in its system message or its last message
    that identify it. Its step has the kind ``side`` and no skills (``training.side_calls``)."""

    def version(self) -> str:
        """The version that the installed program reports.

        Raises:
            ParamsError: it is not installed, or reports no version.
        """
        place = shutil.which(self.run[0])
        if place is None:
            raise ParamsError(
                f"environment.agent: {self.run[0]} is not installed; install it with: {self.install}"
            )
        if self.package is not None:
            return _version_of(self.package, Path(place))
        try:
            said = subprocess.run(
                [place, "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=VERSION_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ParamsError(f"environment.agent: {place} --version does not answer: {error}") from error
        if said.returncode or not said.stdout.strip():
            raise ParamsError(
                f"environment.agent: {place} --version fails with exit code {said.returncode}: "
                f"{said.stderr[-500:]}"
            )
        return said.stdout.strip().splitlines()[-1]


def _version_of(package: str, program: Path) -> str:
    """The version of a Python package in the installation that a program belongs to."""
    installation = program.resolve().parent.parent
    places = [str(path) for path in installation.glob("lib/python3*/*-packages")]
    found = next(iter(distributions(name=package, path=places)), None)
    if found is None:
        raise ParamsError(
            f"environment.agent: {installation}, the installation of {program}, has no {package}"
        )
    return found.version


def shipped() -> dict[str, Path]:
    """Maps the names of agents to their files."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read_agent(name: str) -> AgentFile:
    """The agent with this name, or of the file at this path.

    Raises:
        ParamsError: there is no such agent, or its file is invalid.
    """
    path = shipped().get(name) or found_here(name)
    if not path.is_file():
        raise ParamsError(
            f"environment.agent: {name!r} is not a file, nor one of {', '.join(shipped())}"
            f"{did_you_mean(name, list(shipped()))}"
        )
    try:
        return AgentFile.model_validate(read_yaml_file(path))
    except ValidationError as error:
        raise ParamsError(f"environment.agent: {path} cannot be read: {error}") from error
