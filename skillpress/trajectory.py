"""Tasks, steps and trajectories, and the Parquet files that hold them.

A step keeps the exact token ids that the engine saw and sampled, with their log-probabilities:
what is trained on is what was sampled, never text tokenised again. On disk a task set has one row
per task and a rollout file one row per step; both carry a schema version in the file's metadata and
a file of another version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.storage import StorageError, atomic_path

SCHEMA_VERSION = "1"

TASK_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "environment": pl.String,
    "split": pl.String,
    "stratum": pl.String,
    "seed": pl.Int64,
    "spec": pl.String,
}
"""One row per task; ``spec`` is the environment's own description as JSON."""

ROLLOUT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "group_id": pl.String,
    "rollout_index": pl.Int32,
    "step": pl.Int32,
    "prompt_ids": pl.List(pl.Int32),
    "response_ids": pl.List(pl.Int32),
    "logprobs": pl.List(pl.Float32),
    "thought": pl.String,
    "action": pl.String,
    "observation": pl.String,
    "invalid": pl.String,
    "reward": pl.Float64,
    "terminated": pl.Boolean,
    "truncated": pl.Boolean,
    "won": pl.Boolean,
    "outcome": pl.String,
    "policy_version": pl.Int32,
    "seed": pl.Int64,
}
"""One row per step, in the order acted; ``terminated`` to ``seed`` repeat the trajectory's own."""

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
    """Seeds whatever is random in the world."""
    spec: Mapping[str, Any]
    """The environment's own description (for Countdown: target and numbers)."""
    split: str = ""
    stratum: str = ""
    """Difficulty class, for reporting."""


@dataclass(frozen=True)
class Step:
    """One decision: the prompt the policy saw, what it answered, and what the world said."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """log-probability (nats) of each response token under the sampling distribution."""
    thought: str
    action: str
    """In the world's canonical wording; what was parsed when the world could not read it."""
    observation: str
    """The world's answer O_{k+1}."""
    invalid: str | None
    """Why the action was not carried out: a parser's reason or the world's; None when it was."""
    reward: float
    """The agent's own judgement of this step; shaping is added at training time, not here."""


@dataclass(frozen=True)
class Trajectory:
    """One episode."""

    task_id: str
    group_id: str
    """Rollouts with the same group are judged against each other (GRPO)."""
    rollout_index: int
    steps: tuple[Step, ...]
    won: bool
    terminated: bool
    truncated: bool
    outcome: str
    """``won``, ``timeout``, or the world's name for the loss (``stuck`` ...)."""
    policy_version: int
    seed: int

    @property
    def total_reward(self) -> float:
        """The undiscounted sum of the step rewards."""
        return sum(step.reward for step in self.steps)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(step.action for step in self.steps)


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
        Task(r["task_id"], r["environment"], r["seed"], json.loads(r["spec"]), r["split"], r["stratum"])
        for r in frame.iter_rows(named=True)
    ]


def rollout_frame(trajectories: Iterable[Trajectory]) -> pl.DataFrame:
    """The steps of trajectories as rows of :data:`ROLLOUT_SCHEMA`."""
    rows = [
        (
            t.task_id, t.group_id, t.rollout_index, index,
            s.prompt_ids, s.response_ids, s.logprobs, s.thought, s.action, s.observation,
            s.invalid, s.reward, t.terminated, t.truncated, t.won, t.outcome, t.policy_version, t.seed,
        )
        for t in trajectories
        for index, s in enumerate(t.steps)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ROLLOUT_SCHEMA, orient="row")


def write_rollouts(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories atomically, one row per step."""
    write_table(path, rollout_frame(trajectories), "rollouts")


def scan_rollouts(path: str | Path) -> pl.LazyFrame:
    """The rows of a rollout file, lazily.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, "rollouts", ROLLOUT_SCHEMA)


def read_rollouts(path: str | Path) -> list[Trajectory]:
    """Read whole trajectories back, in the order they were written."""
    frame = scan_rollouts(path).collect()
    keys = ["task_id", "group_id", "rollout_index"]
    return [_trajectory(part.rows(named=True)) for part in frame.partition_by(keys, maintain_order=True)]


def write_sequences(path: str | Path, sequences: Iterable[SkillSequence]) -> None:
    """Write skill sequences atomically."""
    rows = [(s.task_id, s.rollout_index, s.won, s.skills, s.labels) for s in sequences]
    write_table(path, pl.DataFrame(rows, schema=SEQUENCE_SCHEMA, orient="row"), "sequences")


def read_sequences(path: str | Path) -> list[SkillSequence]:
    """Read skill sequences.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    frame = scan_table(path, "sequences", SEQUENCE_SCHEMA).collect()
    return [
        SkillSequence(r["task_id"], r["rollout_index"], r["won"], tuple(r["skills"]), tuple(r["labels"]))
        for r in frame.iter_rows(named=True)
    ]


def _trajectory(rows: Sequence[Mapping[str, Any]]) -> Trajectory:
    steps = tuple(
        Step(
            tuple(r["prompt_ids"]), tuple(r["response_ids"]), tuple(r["logprobs"]),
            r["thought"], r["action"], r["observation"], r["invalid"], r["reward"],
        )
        for r in rows
    )  # fmt: skip
    r = rows[0]
    return Trajectory(
        r["task_id"], r["group_id"], r["rollout_index"], steps, r["won"], r["terminated"],
        r["truncated"], r["outcome"], r["policy_version"], r["seed"],
    )  # fmt: skip


def write_table(path: str | Path, frame: pl.DataFrame, kind: str) -> None:
    """Write a table atomically, marked with what it is and this version of its schema."""
    with atomic_path(path) as temporary:
        frame.write_parquet(temporary, metadata={"skillpress": f"{kind}/{SCHEMA_VERSION}"})


def scan_table(path: str | Path, kind: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
    """The rows that :func:`write_table` wrote, lazily.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    if not Path(path).is_file():
        raise StorageError(f"{path}: no such file; run the stage that makes it")
    try:
        found = pl.read_parquet_metadata(path).get("skillpress", "none")
        lazy = pl.scan_parquet(path)
        columns = lazy.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{path}: not a readable Parquet file ({error}); delete it and rerun") from error
    if found != f"{kind}/{SCHEMA_VERSION}" or dict(columns) != dict(schema):
        raise StorageError(
            f"{path}: schema is {found!r}, this version reads {kind}/{SCHEMA_VERSION!r}; "
            "delete the file and rerun the stage that makes it"
        )
    return lazy
