"""The ``environment`` section of params.yaml for TextWorld-Cooking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from skillpress.environments.bundle import EnvironmentParameters

GAMES_VARIABLE = "SKILLPRESS_GAMES"
"""Environment variable with the cache of compiled games, used if ``games`` is empty."""


class CookingParameters(EnvironmentParameters):
    """Which games there are, and where compiled games are kept."""

    simple_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of simple games in every split; the paper's 4:1 is 0.8."""
    games: str = ""
    """Folder of compiled games, 0.5 MB each. If empty, it is ``$SKILLPRESS_GAMES`` or else
    ``skillpress/games`` in the user's cache folder. It can be deleted at any time."""

    show_refusals: bool = True
    """Whether a compact prompt ends with ``failed`` if the last action changed nothing. No demonstration has
    such an action, so a policy trained from scratch does not learn what to do after one
    (docs/study_pilots.md)."""

    @property
    def why_nothing_unseen(self) -> None:
        """None: there are enough recipes for one more split."""

    @property
    def cache(self) -> Path:
        """The folder of compiled games."""
        chosen = self.games or os.environ.get(GAMES_VARIABLE)
        if chosen:
            return Path(chosen).expanduser()
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return home / "skillpress" / "games"
