"""What the environments of one process share: the endpoint, the workers of functions, the verifier."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

from skillpress.core.lab import ROOT
from skillpress.environments.program.environment import ProgramEnvironment
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.verifier import verifier
from skillpress.play.programs.endpoint import Endpoint
from skillpress.play.programs.functions import START_SECONDS, Functions
from skillpress.play.programs.launch import Commands, Launcher, end_orphans
from skillpress.play.programs.walls import Walled
from skillpress.play.sandbox.limits import MOST_WAITED
from skillpress.play.workers.pool import cores


class SharedPrograms:
    """See ``bundle.SharedEnvironments``."""

    def __init__(self, section: ProgramParameters, slots: int) -> None:
        """Args:
            slots: the number of programs at once.

        Raises:
            UserError: the program or its verifier cannot be imported, or walls cannot be built here.
        """
        self._section, self._verify = section, verifier(section.verify, section.verify_seconds)
        self._walled = section.walls == "bubblewrap" and not isinstance(section.run, str)
        if self._walled:
            Walled.check()
        end_orphans()
        self._folder = Path(mkdtemp(prefix="skillpress-endpoint-"))
        socket = self._folder / "endpoint.sock"
        self._endpoint = Endpoint(socket)
        walls = Walled(socket, ROOT, Walled.limited(section.memory_mb)) if self._walled else None
        self._launcher: Launcher = (
            Functions(section.run, min(cores(), slots), (Path.cwd(), ROOT))
            if isinstance(section.run, str)
            else Commands(section.run, walls)
        )
        self.seconds = (1 + MOST_WAITED) * section.seconds + section.verify_seconds + 3 * START_SECONDS
        """Maximum time of a start or a step."""

    def __call__(self) -> ProgramEnvironment:
        """See ``SharedEnvironments``."""
        return ProgramEnvironment(self._section, self._endpoint, self._launcher, self._verify, self._walled)

    def close(self) -> None:
        """End the workers and the endpoint."""
        self._launcher.close()
        self._endpoint.close()
        shutil.rmtree(self._folder, ignore_errors=True)
