"""Nobody demonstrates the tasks of a foreign server (``OpenEnvParameters.has_oracle``)."""

from __future__ import annotations

from skillpress.core.errors import TaskError
from skillpress.environments.bundle import Oracle
from skillpress.environments.openenv.parameters import OpenEnvParameters


def nobody(parameters: OpenEnvParameters) -> Oracle:
    """Refuses.

    Raises:
        TaskError: always.
    """
    raise TaskError(f"nobody shows how the tasks of {parameters.url} are done")
