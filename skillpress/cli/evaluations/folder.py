"""The results of an evaluation: one folder, which is complete when it has ``evaluation.json``.

parameters.yaml    every parameter that was read, and the player; written first
tasks.parquet      the tasks
rollouts.parquet   every episode, a row per step
page.html          a report for a browser
evaluation.json    all figures with their intervals, versions and costs; written last
unfinished/        episodes of an unfinished evaluation; removed at its end
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError, UserError
from skillpress.core.moved import with_present_keys
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import make_folder, read_schema, sweep, write_json, write_text
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.core.yaml_files import read_yaml_file, write_yaml
from skillpress.evaluation.statistics import BehaviorFigure, EvaluationSummary
from skillpress.evaluation.statistics.strata import halves, within
from skillpress.integrations.formats.texts import TOKENIZER

SCHEMA = "skillpress/evaluation/1"
ALL = "all"
"""The name of the subset that has all tasks."""


def splits_of(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """The tasks of each subset: all tasks, then each split (a stratum's first component if it has two)."""
    parts = {name: [t for t in tasks if within(t.stratum, name)] for name in halves(tasks)}
    return {ALL: list(tasks)} | parts


@dataclass(frozen=True)
class SplitFigures:
    """The figures of all tasks or of one split."""

    summary: EvaluationSummary
    environment_behavior: tuple[BehaviorFigure, ...]
    """Figures about actions that only this environment has."""


@dataclass(frozen=True)
class EvaluationRecord:
    """The content of ``evaluation.json``."""

    label: str
    """The player's name in tables."""
    agent: str
    deciding: Mapping[str, Any]
    """What identifies the agent: a hash of the model, versions of libraries, the model's name at a server."""
    repeats: str
    """One sentence on how exactly the same command repeats the episodes."""
    parameters: Mapping[str, Any]
    """The sections of parameters that were read."""
    parts: Mapping[str, SplitFigures]
    """``all``, then the splits of environments that have them (``iid``, ``ood``)."""
    tokens: Mapping[str, int]
    """``prompt`` and ``response`` tokens of the episodes; empty for an agent without tokens."""
    cost: Mapping[str, int]
    """Requests and tokens that a server counted, including lost requests; empty if no server was used."""
    versions: Mapping[str, str]
    reading: Mapping[str, str]
    """For each figure, its denominator and what its interval covers."""
    endings: Mapping[str, int] = field(default_factory=dict)
    """How many of a server's answers ended in which way (``endings.py``); empty if no server was used."""
    left_out: Sequence[str] = ()
    """Sampling parameters that were not sent to a server, which then chose their values."""
    environment_title: str = ""
    """The environment's title on pages; empty if an older version wrote the evaluation."""

    @property
    def environment(self) -> str:
        """The environment's name in params.yaml."""
        return str(self.parameters["environment"]["name"])

    @property
    def played(self) -> str:
        """The environment's title on pages."""
        return self.environment_title or self.environment

    @property
    def max_steps(self) -> int:
        """T, the step budget."""
        return int(self.parameters["environment"]["max_steps"])

    @property
    def seed(self) -> int:
        """The seed of the episodes' random choices."""
        return int(self.parameters["seed"])


RECORD = TypeAdapter(EvaluationRecord)


class EvaluationFolder:
    """The folder of one evaluation, finished or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parameters, self.tasks_file = path / "parameters.yaml", path / "tasks.parquet"
        self.rollouts_file, self.page = path / "rollouts.parquet", path / "page.html"
        self.record_file, self.unfinished = path / "evaluation.json", path / "unfinished"
        self.lock = path / ".lock"
        """The lock that the evaluating process holds."""

    @property
    def finished(self) -> bool:
        """Whether the evaluation is complete."""
        return self.record_file.is_file()

    @property
    def played(self) -> bool:
        """Whether the folder has figures, or an episode or answer of an unfinished evaluation."""
        return self.finished or any(path.is_file() for path in self.unfinished.rglob("*"))

    def make(self) -> None:
        """Make the folder if it does not exist."""
        make_folder(self.path)

    def store(self, key: str) -> ResumeStore:
        """The store of unfinished episodes."""
        return ResumeStore(self.unfinished, key)

    def claim(self, asked: Mapping[str, Any]) -> None:
        """Record the parameters in a new folder, or check that the folder was begun with the same ones.

        An evaluation that ended before it played anything (a wrong address, missing games) does not count.
        """
        if self.parameters.is_file() and self.played:
            begun = read_yaml_file(self.parameters)
            if not (isinstance(begun, dict) and isinstance(begun.get("parameters"), dict)):
                raise UserError(f"--output: {self.parameters} is another program's file; name another folder")
            begun["parameters"] = with_present_keys(begun["parameters"], str(self.parameters))
            if differing := list(differences(begun, asked)):
                raise UserError(
                    f"--output: {self.path} holds an evaluation in which {'; '.join(differing)}; "
                    "name another folder"
                )
            return
        self.make()
        ours = (self.lock, self.parameters, self.unfinished)
        if any(entry not in ours for entry in self.path.iterdir()):
            raise UserError(
                f"--output: {self.path} is not empty and holds no evaluation; name another folder"
            )
        write_text(self.parameters, write_yaml(dict(asked)))

    def sweep(self) -> None:
        """Remove half-written files of killed processes. Call it only while the lock is held."""
        for file in (self.parameters, self.tasks_file, self.rollouts_file, self.page, self.record_file):
            sweep(file)

    def remove_unfinished(self) -> None:
        """Remove the store of unfinished episodes, once the evaluation is complete."""
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def write(self, record: EvaluationRecord) -> None:
        """Write the figures."""
        write_json(self.record_file, {"schema": SCHEMA, **RECORD.dump_python(record, mode="json")})

    def read(self) -> EvaluationRecord:
        """The figures.

        Raises:
            StorageError: there is no finished evaluation, or another version wrote it.
        """
        values = self._read_record()
        values.pop("schema")
        try:
            record = RECORD.validate_python(values)
        except ValidationError as error:
            raise StorageError(f"{self.record_file}: damaged ({error}); evaluate again") from error
        return replace(record, parameters=with_present_keys(record.parameters, str(self.record_file)))

    def sections(self) -> Mapping[str, Any]:
        """The sections of parameters that the finished evaluation read; its figures are not read.

        Raises:
            StorageError: there is no finished evaluation, or another version wrote it.
        """
        parameters = self._read_record().get("parameters")
        sections = parameters if isinstance(parameters, dict) else {}
        if not all(isinstance(sections.get(name), dict) for name in ("policy", "environment")):
            raise StorageError(
                f"{self.record_file}: damaged (its parameters lack policy or environment); evaluate again"
            )
        return sections

    def tokenizer(self) -> Path | None:
        """The folder with the tokenizer of the model that played. Either it is the folder that the evaluation
        names, relative to the working directory or to a folder above the evaluation, or the hub's snapshot in
        this machine's cache.

        None if the player has no tokenizer here: the random explorer, and models behind a URL.

        Raises:
            StorageError: there is no finished evaluation, or another version wrote it.
        """
        model = str(self.sections()["policy"].get("model", ""))
        places = [Path(model), *(above / model for above in self.path.resolve().parents)]
        here = next((place for place in places if (place / TOKENIZER).is_file()), None)
        return here or _cached_tokenizer(model)

    def _read_record(self) -> dict[str, Any]:
        if not self.finished:
            begun = "is not finished; run its command again" if self.parameters.is_file() else "holds none"
            raise StorageError(f"{self.path}: must be an evaluation's folder, but this one {begun}")
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
    except HFValidationError:  # the name is a path or a URL
        return None
    return Path(found).parent if isinstance(found, str) else None


def differences(one: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """A text such as ``evaluation.votes is 7 and not 3`` for each difference, the other's value last."""
    for key in dict.fromkeys((*one, *other)):
        mine, theirs, place = one.get(key), other.get(key), f"{path}{key}"
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            yield from differences(mine, theirs, f"{place}.")
        elif mine != theirs:
            yield f"{place} is {mine!r} and not {theirs!r}"
