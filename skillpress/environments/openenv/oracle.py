"""The missing oracle: a foreign server's tasks have no demonstrator (``OpenEnvParameters.has_oracle``)."""

from __future__ import annotations

from skillpress.core.errors import TaskError
from skillpress.environments.bundle import Oracle
from skillpress.environments.openenv.parameters import OpenEnvParameters


def nobody(parameters: OpenEnvParameters) -> Oracle:
    """Refuse to make an oracle.

    Raises:
        TaskError: always.
    """
    raise TaskError(f"there is no demonstrator for the tasks of {parameters.url}")
