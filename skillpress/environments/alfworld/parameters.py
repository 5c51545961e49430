"""ALFWorld: household tasks in rooms described in words, with alfworld's engine and official games."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.skills import AlfworldProjection
from skillpress.environments.section import EnvironmentSection, Hosting, Oracle, Projection, SplitSizes


class AlfworldParameters(EnvironmentSection):
    """Where the games are, and how long an episode may take."""

    hosting: ClassVar[Hosting] = "workers"
    answer_forms: ClassVar[bool] = True
    own_tests: ClassVar[bool] = True

    data: str = ""
    """Folder that holds ``json_2.1.1`` (or its archive); if empty, the variable ALFWORLD_DATA is used."""

    @property
    def why_nothing_unseen(self) -> None:
        """Return None, because the official games include rooms that no training game has."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.alfworld.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.alfworld.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.alfworld.environment import Alfworld

        return Alfworld(self)

    def make_projection(self) -> Projection:
        return AlfworldProjection()

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.alfworld.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.alfworld.compact import CompactRendering
        from skillpress.environments.alfworld.prompts import OWN, PAPER, TextRendering

        return {
            "compact": lambda history: CompactRendering(history),
            "text": lambda history: TextRendering(history, OWN),
            "paper": lambda history: TextRendering(history, PAPER % self.max_steps),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.alfworld.compact import vocabulary

        return vocabulary(history)

    def domain_words(self) -> Mapping[str, Sequence[str]]:
        from skillpress.environments.alfworld.compact import domain_words

        return domain_words()

    def make_oracle(self) -> Oracle:
        from skillpress.environments.alfworld.oracle import SearchingOracle

        return SearchingOracle(self)
