"""What an evaluation leaves: one folder, whole when its ``evaluation.json`` is there.

parameters.yaml    every parameter that was read, and who played; written first
tasks.parquet      the tasks
rollouts.parquet   every episode, a row per step
page.html          to look at
evaluation.json    all figures with their intervals, versions and costs; written last
unfinished/        episodes of an evaluation that is still to be finished; removed at its end
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError, UserError
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import read_schema, sweep, write_json, write_text
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.core.yaml_files import read_yaml_file, write_yaml
from skillpress.doors.formats.texts import TOKENIZER
from skillpress.measure.evaluation import BehaviorFigure, EvaluationSummary
from skillpress.measure.evaluation.strata import within

SCHEMA = "skillpress/evaluation/1"
ALL = "all"
"""The part that holds every task."""


class FolderError(UserError):
    """The folder holds another evaluation; the message says in what it differs."""


def splits_of(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Part to its tasks: all of them, then each split (the first half of a stratum that has two)."""
    names = sorted({task.stratum.split("/")[0] for task in tasks if "/" in task.stratum})
    return {ALL: list(tasks)} | {name: [t for t in tasks if within(t.stratum, name)] for name in names}


@dataclass(frozen=True)
class Part:
    """The figures of all tasks, or of those of one split."""

    summary: EvaluationSummary
    environment_behavior: tuple[BehaviorFigure, ...]
    """What only this environment's actions show."""


@dataclass(frozen=True)
class EvaluationRecord:
    """The content of ``evaluation.json``."""

    label: str
    """Who played, as tables call it."""
    agent: str
    deciding: Mapping[str, Any]
    """What identifies the agent: a hash of the model, versions of libraries, the model's name at a server."""
    repeats: str
    """In a sentence, how far the same command gives the same episodes again."""
    parameters: Mapping[str, Any]
    """The sections that were read."""
    parts: Mapping[str, Part]
    """``all``, then the splits of environments that have them (``iid``, ``ood``)."""
    tokens: Mapping[str, int]
    """``prompt`` and ``response`` tokens of the episodes, as far as the agent has tokens."""
    cost: Mapping[str, int]
    """What a server counted, requests that were lost included; empty where nobody was paid."""
    versions: Mapping[str, str]
    reading: Mapping[str, str]
    """Figure to what it is divided by, and what its interval covers."""
    endings: Mapping[str, int] = field(default_factory=dict)
    """How many answers of a server ended how (``endings.py``); empty where no server was asked."""
    left_out: Sequence[str] = ()
    """Parameters of the sampling that were not sent to a server: it chose their values."""
    environment_title: str = ""
    """What pages call the environment; empty in evaluations of versions that did not record it."""

    @property
    def environment(self) -> str:
        """The environment's name in params.yaml."""
        return str(self.parameters["environment"]["name"])

    @property
    def played(self) -> str:
        """What the environment is called on pages."""
        return self.environment_title or self.environment

    @property
    def max_steps(self) -> int:
        """T."""
        return int(self.parameters["environment"]["max_steps"])

    @property
    def seed(self) -> int:
        """Of the episodes' dice."""
        return int(self.parameters["seed"])


RECORD = TypeAdapter(EvaluationRecord)


@dataclass(frozen=True)
class EvaluationFolder:
    """One evaluation's folder, finished or not."""

    path: Path

    @property
    def parameters(self) -> Path:
        """The echo of what was asked for."""
        return self.path / "parameters.yaml"

    @property
    def tasks_file(self) -> Path:
        """The tasks."""
        return self.path / "tasks.parquet"

    @property
    def rollouts_file(self) -> Path:
        """The episodes."""
        return self.path / "rollouts.parquet"

    @property
    def page(self) -> Path:
        """The page."""
        return self.path / "page.html"

    @property
    def record_file(self) -> Path:
        """The figures."""
        return self.path / "evaluation.json"

    @property
    def lock(self) -> Path:
        """Held by the process that evaluates."""
        return self.path / ".lock"

    @property
    def finished(self) -> bool:
        """Whether everything is there."""
        return self.record_file.is_file()

    @property
    def played(self) -> bool:
        """Whether it holds figures, or an episode or answer of an unfinished evaluation."""
        return self.finished or any(path.is_file() for path in self.unfinished.rglob("*"))

    @property
    def unfinished(self) -> Path:
        """Where the episodes of an unfinished evaluation are."""
        return self.path / "unfinished"

    def make(self) -> None:
        """Make the folder where it is not there.

        Raises:
            FolderError: a file is in its place.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise FolderError(f"--output: {self.path} is a file; name a folder") from error

    def store(self, key: str) -> ResumeStore:
        """Where unfinished episodes are kept."""
        return ResumeStore(self.unfinished, key)

    def claim(self, asked: Mapping[str, Any]) -> None:
        """Write what is asked for, or find that it is what the folder was begun with.

        What ended before it had played anything (a wrong address, games that are missing) holds no claim.

        Raises:
            FolderError: the folder holds something else.
        """
        if self.parameters.is_file() and self.played:
            begun = read_yaml_file(self.parameters)
            if not isinstance(begun, dict):
                raise FolderError(f"--output: {self.parameters} is no evaluation's; name another folder")
            if differing := list(differences(begun, asked)):
                raise FolderError(
                    f"--output: {self.path} holds an evaluation in which {'; '.join(differing)}; "
                    "name another folder"
                )
            return
        self.make()
        ours = (self.lock, self.parameters, self.unfinished)
        if any(entry not in ours for entry in self.path.iterdir()):
            raise FolderError(
                f"--output: {self.path} is not empty and holds no evaluation; name another folder"
            )
        write_text(self.parameters, write_yaml(dict(asked)))

    def sweep(self) -> None:
        """Remove what killed processes left half-written; only under the lock."""
        for file in (self.parameters, self.tasks_file, self.rollouts_file, self.page, self.record_file):
            sweep(file)

    def remove_unfinished(self) -> None:
        """Remove the episodes' first copies, once the evaluation is whole."""
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def write(self, record: EvaluationRecord) -> None:
        """Write the figures."""
        write_json(self.record_file, {"schema": SCHEMA, **RECORD.dump_python(record, mode="json")})

    def read(self) -> EvaluationRecord:
        """The figures.

        Raises:
            StorageError: there is no finished evaluation, or it is of another version.
        """
        values = self._read_record()
        values.pop("schema")
        try:
            return RECORD.validate_python(values)
        except ValidationError as error:
            raise StorageError(f"{self.record_file}: damaged ({error}); evaluate again") from error

    def sections(self) -> Mapping[str, Any]:
        """The sections of parameters that the finished evaluation read; its figures are not looked at.

        Raises:
            StorageError: there is no finished evaluation, or it is of another version.
        """
        parameters = self._read_record().get("parameters")
        sections = parameters if isinstance(parameters, dict) else {}
        if not all(isinstance(sections.get(name), dict) for name in ("policy", "environment")):
            raise StorageError(
                f"{self.record_file}: damaged (its parameters lack policy or environment); evaluate again"
            )
        return sections

    def tokenizer(self) -> Path | None:
        """The folder with the tokenizer of the model that played: the folder that the evaluation names, seen
        from here or from a folder above the evaluation, or the hub's snapshot in this machine's cache.

        None where there is none, as for the random explorer and models behind a URL.

        Raises:
            StorageError: there is no finished evaluation, or it is of another version.
        """
        model = str(self.sections()["policy"].get("model", ""))
        places = [Path(model), *(above / model for above in self.path.resolve().parents)]
        here = next((place for place in places if (place / TOKENIZER).is_file()), None)
        return here or _cached_tokenizer(model)

    def _read_record(self) -> dict[str, Any]:
        if not self.finished:
            begun = "is not finished; run its command again" if self.parameters.is_file() else "holds none"
            raise StorageError(f"{self.path}: an evaluation's folder is wanted, this one {begun}")
        return read_schema(self.record_file, SCHEMA, "evaluate again")

    def tasks(self) -> list[Task]:
        """The tasks that were played."""
        return read_tasks(self.tasks_file)

    def rollouts(self) -> pl.LazyFrame:
        """The episodes' steps."""
        return scan_rollouts(self.rollouts_file)


def _cached_tokenizer(model: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, TOKENIZER)
    except HFValidationError:  # a path or a URL
        return None
    return Path(found).parent if isinstance(found, str) else None


def differences(one: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """``evaluation.votes is 7 and not 3`` for every value that differs, the other's last."""
    for key in dict.fromkeys((*one, *other)):
        mine, theirs, place = one.get(key), other.get(key), f"{path}{key}"
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            yield from differences(mine, theirs, f"{place}.")
        elif mine != theirs:
            yield f"{place} is {mine!r} and not {theirs!r}"
