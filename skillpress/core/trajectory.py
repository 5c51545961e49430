"""Tasks, steps and trajectories, and the Parquet files that hold them.

A step keeps the exact token ids that the engine saw and sampled, with their log-probabilities:
what is trained on is what was sampled, never text tokenised again. On disk a task set has one row
per task and a rollout file one row per step; both carry a schema version in the file's metadata and
a file of another version is refused, unless all of its columns still mean the same. What a trajectory is on
disk stands in one table of columns, which gives the schema, the writer and the reader. Whatever an algorithm
compares is among them, so that it finds the same in a trajectory that comes from a file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.storage import atomic_path

SCHEMA_VERSION = "3"
"""Of every table but those of :data:`ROLLOUT_KINDS`."""
ROLLOUT_VERSION = "4"
"""Since 4 rollouts name the states of steps."""
ROLLOUT_KINDS = ("rollouts", "episodes")
"""Tables with the columns of :data:`ROLLOUT_SCHEMA`: whole files, and parts of an unfinished collection."""
ROW_GROUP = 32_768
"""Rows of a rollout file that its writer holds, and that a reader may skip together."""
SEQUENCE_ROW_GROUP, SEQUENCES_HELD = 122_880, 8192
"""The same of a file of skill sequences: rows that stand together, and rows that its writer holds."""

TASK_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "environment": pl.String,
    "split": pl.String,
    "stratum": pl.String,
    "seed": pl.Int64,
    "spec": pl.String,
}
"""One row per task; ``spec`` is the environment's own description as JSON."""

SEQUENCE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "rollout_index": pl.Int32,
    "won": pl.Boolean,
    "skills": pl.List(pl.String),
    "labels": pl.List(pl.String),
}
"""One row per trajectory; ``labels`` has one entry per step, null where the rules give none."""


@dataclass(frozen=True)
class Task:
    """One problem of one environment."""

    task_id: str
    environment: str
    seed: int
    """Seeds whatever is random in the environment."""
    spec: Mapping[str, Any]
    """The environment's own description (for Countdown: target and numbers)."""
    split: str = ""
    stratum: str = ""
    """Difficulty class, for reporting."""


Credit = Literal["step", "trajectory"]
"""What a part of the reward counts for: its own step alone, or the whole episode."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One named part of an agent's judgement of its step."""

    name: str
    value: float
    credit: Credit


@dataclass(frozen=True, slots=True)
class WeightSpan:
    """Tokens ``start`` to ``end`` (exclusive) of a response were sampled from weights ``version``."""

    version: int
    """The training step that the weights stand for."""
    start: int
    end: int


@dataclass(frozen=True)
class Step:
    """One decision: the prompt the policy saw, what it answered, and what the environment said."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """log-probability (nats) of each response token under the sampling distribution; training reads it, and
    files keep it, in float32."""
    thought: str
    action: str
    """In the environment's canonical wording; what was parsed when the environment could not read it."""
    observation: str
    """The environment's answer O_{k+1}."""
    invalid: str | None
    """What was wrong: the parser's reason or the environment's (``interface.why_invalid``); else None."""
    reward_parts: tuple[RewardPart, ...]
    """The agent's own judgement of this step; shaping is added at training time, not here."""
    weight_spans: tuple[WeightSpan, ...] = ()
    """Which weights sampled which tokens of the response, in order; empty where nothing was sampled, or
    where the agent does not say."""
    plain_prompt_ids: tuple[int, ...] | None = None
    """The prompt without what the agent was given to play with (``AgentState.knowledge``); None where it was
    given nothing. Training reads it while it has the step; no file keeps it."""
    state_key: str | None = None
    """The environment's name for the state that it was in before (``Info.state_key``); None where it has
    none, and in files of version 3."""

    @property
    def reward(self) -> float:
        """The sum of the parts."""
        return sum(part.value for part in self.reward_parts)


@dataclass(frozen=True, slots=True)
class Summary:
    """One decision that no environment saw: the agent summed up its past, to go on with that in its place."""

    before: int
    """The number of the step whose prompt is the first to show it."""
    decision: Step
    """What was asked and sampled; its thought is the summary, its action and observation are empty."""


@dataclass(frozen=True)
class Trajectory:
    """One episode."""

    task_id: str
    group_id: str
    """One task's rollouts of one step, which are judged against each other: ``train/17/<task_id>``."""
    rollout_index: int
    steps: tuple[Step, ...]
    """What the environment answered, one after the other; T, skills and every table count these."""
    won: bool
    terminated: bool
    truncated: bool
    outcome: str
    """``won``, ``timeout``, or the environment's name for the loss (``stuck`` ...)."""
    policy_version: int
    """The training step whose weights played."""
    seed: int
    first_observation: str = ""
    """O_0, before any action."""
    policy: str = ""
    """What the experiment calls the policy that played (``start``, ``trained`` ...)."""
    run: int = 0
    """Which of an evaluation's independent runs, counted from 0; 0 outside evaluations."""
    summaries: tuple[Summary, ...] = ()
    """In order, each before a step; empty where the agent does not sum up its past."""

    @property
    def decisions(self) -> tuple[Step, ...]:
        """All that was sampled, in order: the steps, and before some of them a summary. Training learns
        from these."""
        return tuple(step for _, step, _ in self._in_order()) if self.summaries else self.steps

    @property
    def steps_before(self) -> tuple[int, ...]:
        """Of each decision the steps that were made before it."""
        return tuple(number for number, _, _ in self._in_order())

    @property
    def states(self) -> tuple[tuple[bool, str], ...]:
        """Of each decision the state that it was made in: whether it was asked for a summary, and the
        environment's name for its state or, where it has none, what was observed last."""
        observed = (self.first_observation, *(step.observation for step in self.steps))
        return tuple(
            (summary, observed[number] if step.state_key is None else step.state_key)
            for number, step, summary in self._in_order()
        )

    @property
    def total_reward(self) -> float:
        """The undiscounted sum of the rewards of all decisions."""
        return sum(step.reward for step in self.decisions)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(step.action for step in self.steps)

    def _in_order(self) -> Iterator[tuple[int, Step, bool]]:
        """(number of the step, decision, whether it is a summary before that step) of all decisions."""
        for number, step in enumerate(self.steps):
            summed_up = (summary for summary in self.summaries if summary.before == number)
            yield from ((number, summary.decision, True) for summary in summed_up)
            yield number, step, False


@dataclass(frozen=True)
class Column:
    """One column of a rollout file."""

    type: pl.DataType | type[pl.DataType]
    write: Callable[[Any], Any] = lambda value: value
    """From the record's field to what Polars stores."""
    read: Callable[[Any], Any] | None = lambda value: value
    """Back again; None for a column that can be worked out from the others."""


def _write_parts(parts: tuple[RewardPart, ...]) -> list[dict[str, Any]]:
    return [{"name": part.name, "value": part.value, "credit": part.credit} for part in parts]


def _read_parts(rows: list[dict[str, Any]]) -> tuple[RewardPart, ...]:
    return tuple(RewardPart(**row) for row in rows)


def _write_spans(spans: tuple[WeightSpan, ...]) -> list[dict[str, int]]:
    return [{"version": span.version, "start": span.start, "end": span.end} for span in spans]


def _read_spans(rows: list[dict[str, int]]) -> tuple[WeightSpan, ...]:
    return tuple(WeightSpan(**row) for row in rows)


TRAJECTORY_COLUMNS: dict[str, Column] = {
    "task_id": Column(pl.String),
    "group_id": Column(pl.String),
    "policy": Column(pl.String),
    "run": Column(pl.Int32),
    "rollout_index": Column(pl.Int32),
    "first_observation": Column(pl.String),
    "won": Column(pl.Boolean),
    "terminated": Column(pl.Boolean),
    "truncated": Column(pl.Boolean),
    "outcome": Column(pl.String),
    "policy_version": Column(pl.Int32),
    "seed": Column(pl.Int64),
}
"""The fields of a :class:`Trajectory`; every row of it repeats them."""

STEP_COLUMNS: dict[str, Column] = {
    "prompt_ids": Column(pl.List(pl.Int32), read=tuple),
    "response_ids": Column(pl.List(pl.Int32), read=tuple),
    "logprobs": Column(pl.List(pl.Float32), read=tuple),
    "thought": Column(pl.String),
    "action": Column(pl.String),
    "observation": Column(pl.String),
    "invalid": Column(pl.String),
    "reward_parts": Column(
        pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "credit": pl.String})),
        _write_parts,
        _read_parts,
    ),
    "reward": Column(pl.Float64, read=None),
    "weight_spans": Column(
        pl.List(pl.Struct({"version": pl.Int32, "start": pl.Int32, "end": pl.Int32})),
        _write_spans,
        _read_spans,
    ),
    "state_key": Column(pl.String),
}
"""The fields of a :class:`Step` that files keep."""
TRAINING_COLUMNS = ("prompt_ids", "response_ids", "logprobs", "reward_parts", "weight_spans")
"""Those that training alone reads, which are most of a file."""

ROLLOUT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **{name: column.type for name, column in TRAJECTORY_COLUMNS.items()},
    "step": pl.Int32,
    **{name: column.type for name, column in STEP_COLUMNS.items()},
}
"""One row per step, in the order acted; ``step`` counts from 0 within the trajectory. A summary's row has the
number of the step that it stands before and no ``action``."""
TAKEN = pl.col("action").is_not_null()
"""Whether a row is a step, and no summary."""

TRAJECTORY_KEY = ("task_id", "group_id", "rollout_index")
"""What tells the trajectories of a file apart."""


@dataclass(frozen=True)
class SkillSequence:
    """s = φ(τ): the skills of one trajectory."""

    task_id: str
    rollout_index: int
    won: bool
    skills: tuple[str, ...]
    labels: tuple[str | None, ...] = field(default=())
    """One entry per step; None where the rules give the action no label."""


def write_tasks(path: str | Path, tasks: Iterable[Task]) -> None:
    """Write a task set atomically."""
    rows = [
        (t.task_id, t.environment, t.split, t.stratum, t.seed, json.dumps(t.spec, sort_keys=True))
        for t in tasks
    ]
    write_table(path, pl.DataFrame(rows, schema=TASK_SCHEMA, orient="row"), "tasks")


def read_tasks(path: str | Path) -> list[Task]:
    """Read a task set.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    frame = scan_table(path, "tasks", TASK_SCHEMA).collect()
    return [
        Task(
            task_id=row["task_id"],
            environment=row["environment"],
            seed=row["seed"],
            spec=json.loads(row["spec"]),
            split=row["split"],
            stratum=row["stratum"],
        )
        for row in frame.iter_rows(named=True)
    ]


def rollout_frame(trajectories: Iterable[Trajectory]) -> pl.DataFrame:
    """The steps of trajectories as rows of :data:`ROLLOUT_SCHEMA`."""
    rows = [(trajectory, *decision) for trajectory in trajectories for decision in trajectory._in_order()]
    values: dict[str, list[Any]] = {
        name: [column.write(getattr(trajectory, name)) for trajectory, *_ in rows]
        for name, column in TRAJECTORY_COLUMNS.items()
    }
    values["step"] = [index for _, index, *_ in rows]
    for name, column in STEP_COLUMNS.items():
        values[name] = [column.write(getattr(step, name)) for _, _, step, _ in rows]
    values["action"] = [None if summary else step.action for _, _, step, summary in rows]
    return pl.DataFrame(values, schema=ROLLOUT_SCHEMA)


def write_rollouts(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories atomically, one row per step or summary."""
    write_table(path, rollout_frame(trajectories), "rollouts", ROW_GROUP)


def join_rollouts(path: str | Path, parts: Sequence[Path]) -> None:
    """Write the rows of rollout files one after the other, atomically and without holding them: the bytes
    that :func:`write_rollouts` gives for all of their trajectories.

    Raises:
        StorageError: a part is missing, truncated, or of another schema.
    """
    _join(path, [scan_table(part, "rollouts", ROLLOUT_SCHEMA) for part in parts], "rollouts", ROW_GROUP)


def scan_rollouts(path: str | Path) -> pl.LazyFrame:
    """The rows of a rollout file, lazily. One of version 3 names no states: its ``state_key`` is null.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, "rollouts", ROLLOUT_SCHEMA, {"3": ("state_key",)})


def read_rollouts(path: str | Path) -> list[Trajectory]:
    """Read whole trajectories back, in the order they were written.

    Raises:
        StorageError: missing, truncated, of another schema, or a trajectory's steps are not all there.
    """
    return list(iterate_rollouts(path))


def iterate_rollouts(
    path: str | Path, keep: pl.Expr | None = None, tokens: bool = True
) -> Iterator[Trajectory]:
    """Whole trajectories in the order they were written, of which few are in memory at a time.

    Args:
        keep: which of them, by their rows; None is all of them.
        tokens: False leaves out what training alone reads of a step (``TRAINING_COLUMNS``).

    Raises:
        StorageError: missing, truncated, of another schema, or a trajectory's steps are not all there.
    """
    columns = [name for name in ROLLOUT_SCHEMA if tokens or name not in TRAINING_COLUMNS]
    for rows in stretches(scan_rollouts(path), TRAJECTORY_KEY, keep, columns):
        yield from trajectories_of(rows, path)


def trajectories_of(rows: pl.DataFrame, path: str | Path) -> Iterator[Trajectory]:
    """The trajectories of whole trajectories' rows; the fields of columns that are not there are empty.

    Raises:
        StorageError: a trajectory's steps are not all there; the message names ``path``.
    """
    for _, steps in groupby(rows.iter_rows(named=True), itemgetter(*TRAJECTORY_KEY)):
        yield _trajectory(list(steps), path)


def stretches(
    rows: pl.LazyFrame,
    key: Sequence[str],
    keep: pl.Expr | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of a file in their order, about ``ROW_GROUP`` at a time, while the others stay on disk.

    Rows that follow each other with the same key stay together. There is at least one stretch; where there
    is no row it is empty.

    Args:
        rows: a file as it is scanned. A slice of filtered rows can only be found by reading all before it,
            so what filters goes into ``keep``.
        keep: which of the rows; None is all of them.
        columns: which columns, those of the key among them; None is all of them.
    """
    wanted = pl.all() if columns is None else pl.col(columns)
    condition = pl.lit(True) if keep is None else keep
    waiting = rows.head(0).select(wanted).collect()
    for first in range(0, rows.select(pl.len()).collect().item(), ROW_GROUP):
        found = rows.slice(first, ROW_GROUP).filter(condition).select(wanted).collect()
        waiting = pl.concat([waiting, found])
        numbers = waiting.select(pl.struct(*key).rle_id()).to_series()
        end = numbers.search_sorted(numbers[-1]) if waiting.height else 0
        if end:
            yield waiting.head(end)
            waiting = waiting.slice(end)  # the last key's rows may go on behind the slice
    yield waiting


def write_sequences(path: str | Path, sequences: Iterable[SkillSequence]) -> None:
    """Write skill sequences atomically, of which few are in memory at a time."""
    path, waiting = Path(path), iter(sequences)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
        parts = [Path(scratch) / "0"]
        write_table(parts[0], pl.DataFrame(schema=SEQUENCE_SCHEMA), "sequences")
        while some := list(islice(waiting, SEQUENCES_HELD)):
            rows = [(s.task_id, s.rollout_index, s.won, s.skills, s.labels) for s in some]
            parts.append(Path(scratch) / str(len(parts)))
            write_table(parts[-1], pl.DataFrame(rows, schema=SEQUENCE_SCHEMA, orient="row"), "sequences")
        _join(path, [scan_sequences(part) for part in parts], "sequences", SEQUENCE_ROW_GROUP)


def scan_sequences(path: str | Path) -> pl.LazyFrame:
    """Skill sequences, lazily: rows of ``SEQUENCE_SCHEMA``.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, "sequences", SEQUENCE_SCHEMA)


def _join(path: str | Path, parts: Sequence[pl.LazyFrame], kind: str, row_group_size: int) -> None:
    with atomic_path(path) as temporary:
        pl.concat(parts).sink_parquet(temporary, metadata=_metadata(kind), row_group_size=row_group_size)


def _trajectory(rows: Sequence[Mapping[str, Any]], path: str | Path) -> Trajectory:
    taken = [row for row in rows if row["action"] is not None]
    if [row["step"] for row in taken] != list(range(len(taken))):
        place = ", ".join(f"{name} {rows[0][name]}" for name in TRAJECTORY_KEY)
        raise StorageError(
            f"{path}: the {len(taken)} rows of {place} are not its steps from 0 on in their order; make it "
            "again with the command or stage that made it"
        )
    return Trajectory(
        steps=tuple(Step(**_fields(STEP_COLUMNS, row)) for row in taken),
        summaries=tuple(
            Summary(row["step"], Step(**_fields(STEP_COLUMNS, {**row, "action": ""})))
            for row in rows
            if row["action"] is None
        ),
        **_fields(TRAJECTORY_COLUMNS, rows[0]),
    )


def _fields(columns: Mapping[str, Column], row: Mapping[str, Any]) -> dict[str, Any]:
    """The record's fields; those of columns that were not read are empty."""
    return {
        name: column.read(row.get(name, ())) for name, column in columns.items() if column.read is not None
    }


def write_table(path: str | Path, frame: pl.DataFrame, kind: str, row_group_size: int | None = None) -> None:
    """Write a table atomically, marked with what it is and this version of its schema.

    Args:
        row_group_size: rows that stand together in the file; None is Polars' own choice.
    """
    with atomic_path(path) as temporary:
        frame.write_parquet(temporary, metadata=_metadata(kind), row_group_size=row_group_size)


def _metadata(kind: str) -> dict[str, str]:
    return {"skillpress": f"{kind}/{_version(kind)}"}


def _version(kind: str) -> str:
    return ROLLOUT_VERSION if kind in ROLLOUT_KINDS else SCHEMA_VERSION


def scan_table(
    path: str | Path,
    kind: str,
    schema: Mapping[str, Any],
    older: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> pl.LazyFrame:
    """The rows that :func:`write_table` wrote, lazily.

    Args:
        older: earlier versions that are read too, each with the columns that it lacks and that are null then.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "no such file"
        raise StorageError(f"{path}: {what}; run the stage that makes it, or name a file of {kind}")
    try:
        found = pl.read_parquet_metadata(path).get("skillpress")
        # A glob's characters in the name are the name's own.
        lazy = pl.scan_parquet(path, glob=False)
        columns = lazy.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(
            f"{path}: not a readable Parquet file ({error}); name a file of {kind}, or make it again where a "
            "run that was cut off left it so"
        ) from error
    if wrong := _unlike(found, columns, kind):
        raise StorageError(f"{path}: {wrong}; name a file of {kind}")
    lacking = {**older, _version(kind): ()}.get(str(found).partition("/")[2])
    if lacking is None or dict(columns) != {name: schema[name] for name in schema if name not in lacking}:
        raise StorageError(
            f"{path}: schema is {found!r}, this version reads {kind}/{_version(kind)!r}; make it again "
            "with the command or stage that made it"
        )
    empty = {name: pl.lit(None, schema[name]) for name in lacking}
    return lazy.with_columns(**empty).select(list(schema)) if empty else lazy


def _unlike(found: str | None, columns: Iterable[str], kind: str) -> str | None:
    """Why a Parquet file with this mark is no table of this kind; None where it is one."""
    if found is None:
        names = ", ".join(list(columns)[:8]) or "none"
        return f"not a table of skillpress (its columns are {names})"
    other = found.partition("/")[0]
    return None if other == kind else f"holds {other}, and {kind} are wanted"
