"""A training whose files all lie in one folder."""

from __future__ import annotations

from pathlib import Path

from skillpress.experiment.params import Params
from skillpress.experiment.training import TrainingJob
from skillpress.learn.training.checkpoint import Checkpoints
from skillpress.learn.training.trained_episodes import TrainedEpisodes


def job_in(
    folder: Path,
    params: Params,
    prepared: Path,
    *,
    key: str = "benchmark",
    validation: str = "train.parquet",
    episodes: type[TrainedEpisodes] = TrainedEpisodes,
) -> TrainingJob:
    """The training of a start policy, which leaves ``policy`` in the folder.

    Args:
        prepared: holds the start and the tasks.
        key: of the checkpoints: a training goes on from those of its own key alone.
        validation: the file of validation tasks; the training tasks stand in where none are played.
        episodes: of what kind the files for a sample of episodes are.
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
