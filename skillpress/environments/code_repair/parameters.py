"""Code repair: QuixBugs and HumanEvalFix, with bash, edit and submit, judged by hidden tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.skills import CodeRepairProjection
from skillpress.environments.section import (
    EnvironmentSection,
    Hosting,
    Oracle,
    Projection,
    SharedEnvironments,
    SplitSizes,
)
from skillpress.rollouts.sandbox.isolation import Kind


class CodeRepairParameters(EnvironmentSection):
    """Where the programs are, and how long an episode and a test may take."""

    hosting: ClassVar[Hosting] = "threads"
    own_tests: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("unsolved", "passed", "syntax", "lint", "tests")

    data: str = ""
    """Folder with ``quixbugs_python.tar.xz`` and ``humanevalfix.jsonl``; if empty, the variable
    SKILLPRESS_CODE_REPAIR is used."""
    test_seconds: Annotated[float, Field(gt=0, le=60)]
    """Processor time that one call of the program may take in its first try. A program that exceeds it is
    tried again with twice as much or, if that is more, four times the correct program's time."""
    episode_seconds: Annotated[float, Field(gt=0)]
    """How long the agent's own sandbox may work in one episode."""
    isolation: Kind = "bubblewrap"
    """Isolation of the sandboxes. ``gvisor`` runs each on a kernel of its own and needs ``runsc``."""
    measure_edits: bool
    """Whether each edit is linted and tested, for a dense reward."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.code_repair.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.code_repair.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.code_repair.environment import CodeRepair

        return CodeRepair(self)

    def make_projection(self) -> Projection:
        return CodeRepairProjection()

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.code_repair.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.code_repair.compact import CompactRendering
        from skillpress.environments.code_repair.prompts import OWN, TextRendering

        return {
            "compact": lambda history: CompactRendering(history),
            "text": lambda history: TextRendering(history, OWN),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.code_repair.compact import vocabulary

        return vocabulary(history)

    def make_oracle(self) -> Oracle:
        from skillpress.environments.code_repair.oracle import GoldPatcher

        return GoldPatcher(self)

    def make_shared(self, slots: int) -> SharedEnvironments:
        from skillpress.environments.code_repair.environment import SharedRepairs

        return SharedRepairs(self, slots)

    def inputs(self) -> Mapping[str, str]:
        from skillpress.environments.code_repair.programs import data_identity

        return data_identity(self)
