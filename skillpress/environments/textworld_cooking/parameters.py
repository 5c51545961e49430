"""TextWorld-Cooking: follow a recipe in a text game in which food can burn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.section import EnvironmentSection, Hosting, Oracle, Projection, SplitSizes
from skillpress.environments.textworld_cooking.skills import PROJECTION

GAMES_VARIABLE = "SKILLPRESS_GAMES"
"""Environment variable with the cache of compiled games, used if ``games`` is empty."""


class CookingParameters(EnvironmentSection):
    """Which games there are, and where compiled games are kept."""

    hosting: ClassVar[Hosting] = "workers"
    answer_forms: ClassVar[bool] = True
    own_tests: ClassVar[bool] = True

    simple_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of simple games in every split; the paper's 4:1 is 0.8."""
    games: str = ""
    """Folder of compiled games, 0.5 MB each, which may be deleted. If empty, it is ``$SKILLPRESS_GAMES`` or
    else ``skillpress/games`` in the user's cache folder."""

    show_refusals: bool = True
    """Whether a compact prompt ends with ``failed`` if the last action changed nothing. No demonstration has
    such an action, so a policy trained from scratch does not learn what to do after one
    (studies/study/pilots.md)."""

    @property
    def why_nothing_unseen(self) -> None:
        """Return None, because there are enough recipes for one more split."""

    @property
    def cache(self) -> Path:
        """The folder of compiled games."""
        chosen = self.games or os.environ.get(GAMES_VARIABLE)
        if chosen:
            return Path(chosen).expanduser()
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return home / "skillpress" / "games"

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.textworld_cooking.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.textworld_cooking.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.textworld_cooking.environment import TextWorldCooking

        return TextWorldCooking(self)

    def make_projection(self) -> Projection:
        return PROJECTION

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.textworld_cooking.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.textworld_cooking.prompts import (
            OWN,
            PAPER,
            CompactRendering,
            TextRendering,
        )

        return {
            "compact": lambda history: CompactRendering(history, self.show_refusals),
            "text": lambda history: TextRendering(history, OWN),
            "paper": lambda history: TextRendering(history, PAPER % self.max_steps),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.textworld_cooking.prompts import vocabulary

        return vocabulary(history)

    def domain_words(self) -> Mapping[str, Sequence[str]]:
        from skillpress.environments.textworld_cooking.prompts import domain_words

        return domain_words()

    def make_oracle(self) -> Oracle:
        from skillpress.environments.textworld_cooking.oracle import CookingOracle

        return CookingOracle(self)
