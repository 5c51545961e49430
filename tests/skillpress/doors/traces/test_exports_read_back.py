"""The results of ``skillpress export`` and the MLflow traces of rollouts agree with the rollout file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from mlflow.entities import Trace, TraceData

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.doors.formats.atif import write_atif
from skillpress.doors.formats.texts import Texts
from skillpress.doors.traces.fields import Wanted
from skillpress.doors.traces.log import Log, read_log
from skillpress.doors.traces.projection import NameProjection
from skillpress.pipeline.tracking.episode_trace import EpisodeTrace, StageRecord


def said_by(log: Log) -> list[tuple[object, ...]]:
    """Everything behind the page, in the order of files."""
    return list(zip(log.skills, log.steps, log.success, log.task, log.version, log.time, strict=True))


def write_mlflow(path: Path, episodes: list[Trajectory], texts: Texts) -> None:
    stage = StageRecord("1", "run", "evaluate_policy")
    with path.open("w", encoding="utf-8") as file:
        for each in episodes:
            trace = EpisodeTrace(stage, each, tuple(texts(each)), 1_700_000_000_000_000_000)
            file.write(Trace(trace.info(), TraceData(list(trace.spans()))).to_json() + "\n")


@pytest.mark.parametrize("write", [write_atif, write_mlflow])
def test_exported_rollouts_are_the_same_log(write, episode, tmp_path: Path) -> None:
    actions = ['{"tool": "edit", "command": "view"}', "!", '!{"tool": "submit"}', "go to desk 1", "!<b>"]
    played = [
        dataclasses.replace(
            episode(f"t{number % 3}", number, actions[number % 5 :], number % 2 == 0),
            policy="start",
            policy_version=number,
        )
        for number in range(10)
    ]
    write_rollouts(tmp_path / "rollouts.parquet", played)
    write(tmp_path / "exported.jsonl", played, Texts())
    ours, theirs = (
        read_log([tmp_path / name], NameProjection(), Wanted(), 0.0)
        for name in ("rollouts.parquet", "exported.jsonl")
    )
    assert said_by(theirs) == said_by(ours) and theirs.alphabet == ours.alphabet == ("edit", "submit")
