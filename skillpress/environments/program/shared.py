"""What the environments of one process share: the endpoint, the workers of functions, the verifier."""

from __future__ import annotations

import os
from pathlib import Path

from skillpress.core.errors import ParamsError
from skillpress.core.lab import ROOT
from skillpress.core.temporary import TemporaryFolder
from skillpress.environments.program.environment import ProgramEnvironment
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.verifier import verifier
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.functions import START_SECONDS, Functions
from skillpress.rollouts.programs.isolated import Isolated
from skillpress.rollouts.programs.launch import Commands, Launcher, end_orphans
from skillpress.rollouts.programs.mounting import MountedSkills
from skillpress.rollouts.programs.setting import AgentSetting
from skillpress.rollouts.sandbox.limits import MOST_WAITED
from skillpress.rollouts.sandbox.sandbox import check_isolation
from skillpress.rollouts.workers.pool import cores


class SharedPrograms:
    """See ``section.SharedEnvironments``."""

    def __init__(self, section: ProgramParameters, slots: int) -> None:
        """Args:
            slots: the number of programs at once.

        Raises:
            UserError: the program or its verifier cannot be imported, isolation cannot be built here, or a
                file or a variable that the section names is missing.
        """
        self._section, self._verify = section, verifier(section.verify, section.verify_seconds)
        self._isolated = section.isolation != "none"
        if section.isolation != "none":
            check_isolation(section.isolation)
        passed, copied = _passed(section), section.copied
        end_orphans()
        self._folder = TemporaryFolder("programs")
        private = self._folder.path / "socket"
        private.mkdir(mode=0o700)
        socket = private / "endpoint"
        self._endpoint = Endpoint(socket)
        given = section.given_skills()
        skills = MountedSkills.of(given, self._folder.path / "skills") if given else None
        self._skills = skills
        agent = section.agent_file()
        self._launcher: Launcher
        if isinstance(section.run, str):
            self._launcher = Functions(section.run, min(cores(), slots), (Path.cwd(), ROOT))
        else:
            command = agent.run if agent else section.run or []
            isolated = None
            if section.isolation != "none":
                limits = Isolated.limited(section.memory_mb)
                isolated = Isolated(
                    socket, command, limits=limits, passed=passed, isolation=section.isolation
                )
            setting = AgentSetting(agent.variables, agent.files) if agent else None
            self._launcher = Commands(command, isolated, copied, skills=skills, setting=setting)
        self.seconds = (1 + MOST_WAITED) * section.seconds + section.verify_seconds + 3 * START_SECONDS
        """Maximum time of a start or a step."""

    def __call__(self) -> ProgramEnvironment:
        """See ``SharedEnvironments``."""
        return ProgramEnvironment(
            self._section,
            self._endpoint,
            self._launcher,
            self._verify,
            isolated=self._isolated,
            folder=self._folder.path,
            skills=self._skills,
        )

    def close(self) -> None:
        """End the workers and the endpoint."""
        self._launcher.close()
        self._endpoint.close()
        self._folder.remove()


def _passed(section: ProgramParameters) -> dict[str, str]:
    """The variables that isolated commands get from this process.

    Raises:
        ParamsError: one of them is not set.
    """
    if missing := [name for name in section.pass_variables if name not in os.environ]:
        raise ParamsError(
            f"environment.pass_variables: {missing[0]} is not set in this process's environment"
        )
    return {name: os.environ[name] for name in section.pass_variables}
