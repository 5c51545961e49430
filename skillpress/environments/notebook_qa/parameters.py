"""The ``environment`` section of params.yaml for question answering, and the files that it names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from skillpress.core.errors import UserError
from skillpress.environments.bundle import EnvironmentParameters

DATA_VARIABLE = "QA_DATA"
"""Environment variable that names the data folder where ``data`` is empty."""
INDEXES_VARIABLE = "SKILLPRESS_INDEXES"
"""Environment variable that names the folder of search indexes where ``indexes`` is empty."""
QUESTIONS, PARAGRAPHS = "questions.parquet", "paragraphs.parquet"


class NotebookQaParameters(EnvironmentParameters):
    """Which questions are asked, what may be looked up, and what code may use."""

    data: str = ""
    """Folder with ``questions.parquet`` and ``paragraphs.parquet``; empty takes the variable QA_DATA."""
    indexes: str = ""
    """Folder of search indexes, about as large as their paragraphs; empty means ``$SKILLPRESS_INDEXES``, or
    else ``skillpress/indexes`` in the user's cache folder. It can be deleted at any time."""
    train_on: list[str] = Field(default_factory=lambda: ["hotpotqa"])
    """Data sets whose questions of split ``train`` are the training tasks, and of ``dev`` the validation
    tasks."""
    test_on: list[str] = Field(default_factory=lambda: ["hotpotqa"])
    """Data sets whose questions of split ``test`` (and of ``dev``, where no training tasks come from them)
    are the test tasks."""
    max_answer_words: Annotated[int, Field(ge=1)] = 10
    """Training questions with longer answers are dropped: they are hard to match exactly."""
    hops: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    """Facts that a question joins; others are left out of every split. Empty takes all."""
    reachable: bool = False
    """Whether training tasks are only those that the short action words can answer, as a policy of the
    compact rendering needs; validation and test tasks are never chosen so."""
    pass_rates: str = ""
    """Parquet file with ``task_id``, ``wins`` and ``rollouts`` of one policy, to class the tasks by, such as
    the data/rollouts/pass_rates.parquet of an earlier experiment; empty where none is known."""
    objectivity: str = ""
    """Parquet file with a model's verdicts on training questions (``skillpress judge-questions``), of which
    those found unfit are dropped; empty asks no model."""
    top_k: Annotated[int, Field(ge=1)] = 5
    """Hits of a search that names no number."""
    cell_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How long one cell may run, its searches counted."""
    episode_seconds: Annotated[float, Field(gt=0)] = 300.0
    """How long the cells of an episode may run together; the policy's own time is not counted."""
    memory_mb: Annotated[int, Field(ge=16)] = 512
    """Of the interpreter and all that it starts."""
    output_characters: Annotated[int, Field(ge=100, le=40_000)] = 4000
    """Of what a cell prints, as the agent sees it; the middle of more is left out."""

    @property
    def folder(self) -> Path:
        """The data folder.

        Raises:
            UserError: none is named, or a file is not there.
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
    """File to a hash of what is in it, of all that the section names.

    Raises:
        UserError: a file is missing.
    """
    named = [Path(name) for name in (parameters.pass_rates, parameters.objectivity) if name]
    files = [parameters.folder / QUESTIONS, parameters.folder / PARAGRAPHS, *named]
    return {file.name: _digest(file) for file in files}


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error}") from error
