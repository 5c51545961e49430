"""The ``environment`` section of params.yaml for ALFWorld."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentParameters


class AlfworldParameters(EnvironmentParameters):
    """Where the games are, and how long an episode may take."""

    data: str = ""
    """Folder that holds ``json_2.1.1`` (or its archive); empty takes the variable ALFWORLD_DATA."""

    @property
    def why_nothing_unseen(self) -> None:
        """None: the official games include rooms that no training game has."""
