"""The episodes that the start policy plays before training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillpress.core.resume import ResumeStore
from skillpress.core.trajectory import Task
from skillpress.experiment.collection import CollectionJob, Play
from skillpress.experiment.params import Params
from skillpress.rollouts.collection import requests


def start_job(params: Params, tasks: Sequence[Task], model: Path, store: ResumeStore) -> CollectionJob:
    """The episodes that ``rollouts`` asks for, of the first training tasks, played by the start policy."""
    played = tasks[: params.rollouts.played(len(tasks))]
    wanted = requests(played, params.rollouts.per_task, params.seed, "base", policy="start")
    return CollectionJob(params=params, sampling="training", plays=[Play(model, wanted)], store=store)
