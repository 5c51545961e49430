"""The ``environment`` section of params.yaml for question answering, and the files that it names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from skillpress.core.errors import UserError
from skillpress.environments.bundle import EnvironmentParameters
from skillpress.play.sandbox.isolation import Kind

DATA_VARIABLE = "QA_DATA"
"""Environment variable with the data folder, used if ``data`` is empty."""
INDEXES_VARIABLE = "SKILLPRESS_INDEXES"
"""Environment variable with the folder of search indexes, used if ``indexes`` is empty."""
QUESTIONS, PARAGRAPHS = "questions.parquet", "paragraphs.parquet"


class NotebookQaParameters(EnvironmentParameters):
    """Which questions are asked, what may be searched, and the limits of the code."""

    data: str = ""
    """Folder with ``questions.parquet`` and ``paragraphs.parquet``; if empty, the variable QA_DATA is
    used."""
    indexes: str = ""
    """Folder of search indexes, which are about as large as their paragraphs. If empty, it is
    ``$SKILLPRESS_INDEXES`` or else ``skillpress/indexes`` in the user's cache folder. It can be deleted at
    any time."""
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
    reachable: bool = False
    """Whether to use only training tasks that short actions can solve, as a policy of the compact rendering
    requires. Validation and test tasks are never filtered in this way."""
    pass_rates: str = ""
    """Parquet file with ``task_id``, ``wins`` and ``rollouts`` of one policy, by which tasks are classified,
    such as the data/rollouts/pass_rates.parquet of an earlier experiment; empty for no classification."""
    objectivity: str = ""
    """Parquet file with a model's verdicts on training questions (``skillpress judge-questions``); questions
    found unsuitable are dropped. If empty, no verdicts are used."""
    top_k: Annotated[int, Field(ge=1)] = 5
    """Number of hits of a search that does not specify it."""
    cell_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Maximum time of one cell, including its searches."""
    episode_seconds: Annotated[float, Field(gt=0)] = 300.0
    """Maximum total time of an episode's cells, without the policy's own time."""
    memory_mb: Annotated[int, Field(ge=16)] = 512
    """Memory of the interpreter and all processes that it starts."""
    walls: Kind = "bubblewrap"
    """Isolation of the sandboxes. ``gvisor`` runs each on a kernel of its own and needs ``runsc``."""
    output_characters: Annotated[int, Field(ge=100, le=40_000)] = 4000
    """Maximum number of characters of a cell's output that the agent sees; longer output is cut in the
    middle."""

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
        for name in (QUESTIONS, PARAGRAPHS):
            if not (folder / name).is_file():
                raise UserError(f"environment.data: {folder} lacks {name}; docs/question_answering.md has it")
        return folder

    @property
    def index_home(self) -> Path:
        """The folder of search indexes."""
        chosen = self.indexes or os.environ.get(INDEXES_VARIABLE)
        if chosen:
            return Path(chosen).expanduser()
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return home / "skillpress" / "indexes"


def data_identity(parameters: NotebookQaParameters) -> dict[str, str]:
    """Maps each file that the section names to a hash of its contents."""
    named = [Path(name) for name in (parameters.pass_rates, parameters.objectivity) if name]
    files = [parameters.folder / QUESTIONS, parameters.folder / PARAGRAPHS, *named]
    return {file.name: _digest(file) for file in files}


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error}") from error
