"""Resources that the environments of one process share: endpoint, workers of functions, and verifier."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from skillpress.core.errors import ParamsError
from skillpress.core.lab import ROOT
from skillpress.core.temporary import TemporaryFolder
from skillpress.environments.program.environment import ProgramEnvironment
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.section import ProgramSection
from skillpress.environments.program.verifier import Verify, verifier
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.functions import START_SECONDS, Apart, Called, Functions
from skillpress.rollouts.programs.isolated import Isolated, clock
from skillpress.rollouts.programs.launch import Commands, Launcher, end_orphans
from skillpress.rollouts.programs.mounting import MountedSkills
from skillpress.rollouts.programs.setting import AgentSetting
from skillpress.rollouts.sandbox.limits import MOST_WAITED
from skillpress.rollouts.sandbox.sandbox import check_isolation
from skillpress.rollouts.workers.pool import cores

_LOG = logging.getLogger(__name__)


class SharedEndpoint:
    """See ``section.SharedEnvironments``: the resources that every environment's programs share."""

    _launcher: Launcher
    _verify: Verify
    seconds: float
    """Maximum time of a start or a step."""

    def __init__(self, section: ProgramSection, *, isolated: bool) -> None:
        """Args:
        isolated: whether programs reach the endpoint by a forwarder inside their isolation."""
        self._section, self._isolated = section, isolated
        end_orphans()
        self._folder = TemporaryFolder("programs")
        private = self._folder.path / "socket"
        private.mkdir(mode=0o700)
        self._socket = private / "endpoint"
        self._episodes = self._folder.path / "episodes"
        self._episodes.mkdir()
        self._episodes.chmod(0o711)  # an isolated program's user passes through, and lists nothing
        self._endpoint = Endpoint(self._socket)
        given = section.given_skills()
        agent = section.agent_file()
        own = agent.skills if agent else ""
        self._skills = MountedSkills.of(given, self._folder.path / "skills", own) if given else None
        self._side_calls = agent.side_calls if agent else None

    def __call__(self) -> ProgramEnvironment:
        """See ``SharedEnvironments``."""
        return ProgramEnvironment(
            self._section,
            self._endpoint,
            self._launcher,
            self._verify,
            isolated=self._isolated,
            folder=self._episodes,
            skills=self._skills,
            side_calls=self._side_calls,
        )

    def close(self) -> None:
        """End the workers and the endpoint."""
        self._launcher.close()
        self._endpoint.close()
        self._folder.remove()


class SharedPrograms(SharedEndpoint):
    """The resources shared by programs with the user's own verifier."""

    def __init__(self, section: ProgramParameters, slots: int) -> None:
        """Args:
            slots: the number of programs at once.

        Raises:
            UserError: the program or its verifier cannot be imported, isolation cannot be built here, or a
                file or a variable that the section names is missing.
        """
        self._verify = verifier(section.verify, section.verify_seconds)
        if section.isolation != "none":
            check_isolation(section.isolation)
        if section.date is not None:
            clock(section.date)  # a missing library is an error now, and not at the first episode
        if told := str(section.vendor_variables()):
            _LOG.warning("environment.isolation is none: %s", told)
        passed, copied = variables_passed(section), section.copied
        super().__init__(section, isolated=section.isolation != "none")
        agent = section.agent_file()
        run = [section.interpreter] if isinstance(section.run, str) else section.run
        command = agent.run if agent else run or []
        isolated = None
        if section.isolation != "none":
            limits = Isolated.limited(section.memory_mb)
            isolated = Isolated(
                self._socket,
                command,
                limits=limits,
                passed=passed,
                isolation=section.isolation,
                day=section.date,
            )
        if isinstance(section.run, str):
            apart = Apart(isolated, copied, self._episodes) if isolated else None
            called = Called(section.run, (Path.cwd(), ROOT), python=command[0], apart=apart)
            self._launcher = Functions(called, min(cores(), slots))
        else:
            setting = AgentSetting(agent.variables, agent.files) if agent else None
            self._launcher = Commands(command, isolated, copied, skills=self._skills, setting=setting)
        self.seconds = (1 + MOST_WAITED) * section.seconds + section.verify_seconds + 3 * START_SECONDS


def variables_passed(section: ProgramSection) -> dict[str, str]:
    """The variables that isolated commands get from this process.

    Raises:
        ParamsError: one of them is not set.
    """
    if missing := [name for name in section.pass_variables if name not in os.environ]:
        raise ParamsError(
            f"environment.pass_variables: {missing[0]} is not set in this process's environment"
        )
    return {name: os.environ[name] for name in section.pass_variables}
