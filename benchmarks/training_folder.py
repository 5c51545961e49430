"""A training with all its files in one folder."""

from __future__ import annotations

from pathlib import Path

from skillpress.experiment.params import Params
from skillpress.experiment.training import TrainingJob
from skillpress.learn.training.describing.trained_episodes import TrainedEpisodes
from skillpress.learn.training.keeping.checkpoint import Checkpoints


def job_in(
    folder: Path,
    params: Params,
    prepared: Path,
    *,
    key: str = "benchmark",
    validation: str = "train.parquet",
    episodes: type[TrainedEpisodes] = TrainedEpisodes,
) -> TrainingJob:
    """The training of a start policy, which writes ``policy`` to the folder.

    Args:
        prepared: the folder with the start and the tasks.
        key: the key of the checkpoints: a training only resumes from checkpoints with its own key.
        validation: the file of validation tasks; the training tasks replace it if none are played.
        episodes: the kind of files for a sample of episodes.
    """
    return TrainingJob(
        params=params,
        tasks=prepared / "train.parquet",
        validation=prepared / validation,
        unseen=prepared / "unseen.parquet",
        start=prepared / "start",
        output=folder / "policy",
        history=folder / "dictionaries.json",
        library=folder / "library.json",
        probes=folder / "probes.parquet",
        episodes=episodes(folder / "training.parquet", folder / "advantages.parquet"),
        checkpoints=Checkpoints(folder / "checkpoints", key),
    )
