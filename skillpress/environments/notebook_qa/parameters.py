"""Multi-hop question answering by code: L0's notebook agent with search, in a sandbox.

``environment.py`` runs the cells. ``notebook.py`` prepares the agent's interpreter, and ``actions.py`` reads
actions. ``desk.py`` and ``candidates.py`` hold what is shown to a policy that reads no English.
``answers.py`` decides whether an answer is right, ``questions.py`` which questions are suitable, and
``tasks.py`` which of them become tasks. ``search/`` holds the
search. A judge that grades answers for a table affects no episode; it is in ``skillpress/evaluation/judge``.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import Field

from skillpress.core.errors import UserError
from skillpress.core.interface import Environment, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.skills import NotebookProjection
from skillpress.environments.section import (
    EnvironmentSection,
    Hosting,
    Oracle,
    Projection,
    SharedEnvironments,
    SplitSizes,
)
from skillpress.rollouts.sandbox.isolation import Kind

DATA_VARIABLE = "QA_DATA"
"""Environment variable with the data folder, used if ``data`` is empty."""
INDEXES_VARIABLE = "SKILLPRESS_INDEXES"
"""Environment variable with the folder of search indexes, used if ``indexes`` is empty."""
Difficulty = Literal["all", "easy", "hard"]
QUESTIONS, PARAGRAPHS = "questions.parquet", "paragraphs.parquet"


class QuestionOracle(Oracle, Protocol):
    """A demonstrator of short actions."""

    def way(self, task: Task) -> list[str] | None:
        """Short actions that win; None if there are none."""
        ...


class QuestionParameters(EnvironmentSection):
    """Which questions are asked, and where they and the paragraphs are."""

    hosting: ClassVar[Hosting] = "threads"
    libraries: ClassVar[tuple[str, ...]] = ("tantivy",)
    own_tests: ClassVar[bool] = True

    data: str = ""
    """Folder with ``questions.parquet`` and ``paragraphs.parquet``; if empty, the variable QA_DATA is
    used."""
    indexes: str = ""
    """Folder of search indexes, which are about as large as their paragraphs and may be deleted. If empty, it
    is ``$SKILLPRESS_INDEXES`` or else ``skillpress/indexes`` in the user's cache folder."""
    train_on: list[str] = Field(default_factory=lambda: ["hotpotqa"])
    """Data sets whose ``train`` questions are the training tasks and whose ``dev`` questions are the
    validation tasks."""
    test_on: list[str] = Field(default_factory=lambda: ["hotpotqa"])
    """Data sets whose ``test`` questions are the test tasks. The ``dev`` questions are added if the data set
    has no training tasks."""
    max_answer_words: Annotated[int, Field(ge=1)] = 10
    """Training questions with longer answers are dropped: they are hard to match exactly."""
    hops: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    """Number of facts that a question may join; other questions are left out of every split. Empty allows
    all."""
    difficulty: Difficulty = "all"
    """Which training questions are asked: ``easy`` ones need one fact, ``hard`` ones join several. Validation
    and test tasks include all, whatever the value is."""
    reachable: bool = False
    """Whether to use only training tasks that short actions can solve, as a policy of the compact rendering
    requires. Validation and test tasks are never filtered in this way."""
    objectivity: str = ""
    """Parquet file with a model's ratings of training questions (``skillpress judge-questions``); those not
    rated 1 for objectivity and for temporal stability are dropped. If empty, regular expressions decide."""

    @property
    def data_files(self) -> tuple[str, ...]:
        """The files in :attr:`folder` that its episodes read."""
        return QUESTIONS, PARAGRAPHS

    @property
    def folder(self) -> Path:
        """The data folder.

        Raises:
            UserError: none is named, or a file is missing.
        """
        named = self.data or os.environ.get(DATA_VARIABLE, "")
        if not named:
            raise UserError(
                f"environment.data: is empty and {DATA_VARIABLE} is not set; name the folder with "
                f"{QUESTIONS} and {PARAGRAPHS} in either (docs/question_answering.md says what they hold)"
            )
        folder = Path(named).expanduser()
        for name in self.data_files:
            if not (folder / name).is_file():
                raise UserError(f"environment.data: {folder} lacks {name}; docs/question_answering.md has it")
        return folder

    @property
    def index_home(self) -> Path:
        """The folder of search indexes."""
        return index_home(self.indexes)

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.notebook_qa.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.notebook_qa.tasks import check_tasks

        check_tasks(tasks, self.name)

    @abstractmethod
    def make_oracle(self) -> QuestionOracle:
        self._lacks("make_oracle")

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.notebook_qa.compact import vocabulary

        return vocabulary(history)

    def inputs(self) -> Mapping[str, str]:
        named = [Path(self.objectivity)] if self.objectivity else []
        files = [*(self.folder / name for name in self.data_files), *named]
        return {file.name: _digest(file) for file in files}

    def dropped(self) -> Mapping[str, Mapping[str, int]]:
        """Maps data set to reason to the number of questions left out for it, including ``kept``."""
        from skillpress.environments.notebook_qa.tasks import dropped

        return dropped(self)


class NotebookQaParameters(QuestionParameters):
    """Which questions are asked, what may be searched, and the limits of the code."""

    measures: ClassVar[tuple[str, ...]] = ("exact_match", "f1", "has_answer", "executed")
    """``executed`` is measured at every step: whether its code ran without an error. The others are measured
    only at the last step."""
    notepad: ClassVar[bool] = True

    top_k: Annotated[int, Field(ge=1)] = 5
    """Number of hits of a search that does not specify it."""
    cell_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Maximum time of one cell, including its searches."""
    episode_seconds: Annotated[float, Field(gt=0)] = 300.0
    """Maximum total time of an episode's cells, without the policy's own time."""
    memory_mb: Annotated[int, Field(ge=16)] = 512
    """Memory of the interpreter and all processes that it starts."""
    isolation: Kind = "bubblewrap"
    """Isolation of the sandboxes. ``gvisor`` runs each on a kernel of its own and needs ``runsc``."""
    output_characters: Annotated[int, Field(ge=100, le=40_000)] = 4000
    """Maximum number of characters of a cell's output that the agent sees; longer output is cut in the
    middle."""

    def make(self) -> Environment:
        from skillpress.environments.notebook_qa.environment import make

        return make(self)

    def make_projection(self) -> Projection:
        return NotebookProjection()

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.notebook_qa.compact import CompactRendering
        from skillpress.environments.notebook_qa.prompts import OWN, PAPER, TOOLS, NotebookRendering
        from skillpress.environments.notebook_qa.scaffolds import scaffolds

        tools = TOOLS.format(top_k=self.top_k)
        return {
            "compact": lambda history: CompactRendering(history),
            "text": lambda history: NotebookRendering(history, OWN, tools),
            "paper": lambda history: NotebookRendering(history, PAPER, tools),
            **scaffolds(self),
        }

    def make_oracle(self) -> QuestionOracle:
        from skillpress.environments.notebook_qa.oracle import CompactOracle

        return CompactOracle(self)

    def make_shared(self, slots: int) -> SharedEnvironments:
        from skillpress.environments.notebook_qa.environment import share

        return share(self, slots)


def index_home(named: str) -> Path:
    """The folder of search indexes: the one named, or else the variable's or that in the user's cache."""
    chosen = named or os.environ.get(INDEXES_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "skillpress" / "indexes"


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error}") from error
