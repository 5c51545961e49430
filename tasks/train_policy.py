"""Stage: reinforcement learning; an interrupted training resumes from its last checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.experiment.training import TrainingJob, train
from skillpress.pipeline.files import (
    BASE_POLICY,
    CHECKPOINTS,
    HISTORY,
    KEPT_TASKS,
    LIBRARY,
    POLICY,
    PROBES,
    RESULTS,
    SELECTED,
    START_SKILLS,
    TRAINING_ADVANTAGES,
    TRAINING_ROLLOUTS,
    UNSEEN,
    load_tasks,
    split_file,
    write_curve,
)
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes
from skillpress.training.loop.keeping.checkpoint import Checkpoints
from skillpress.training.loop.keeping.selected_checkpoint import select_checkpoint, write_selected

if TYPE_CHECKING:
    from skillpress.core.resume import ResumeStore
    from skillpress.experiment.params import Params
    from skillpress.pipeline.stage import Stage


def training_job(params: Params, store: ResumeStore) -> TrainingJob:
    """The training that this folder's parameters describe."""
    return TrainingJob(
        params=params,
        tasks=KEPT_TASKS,
        validation=split_file("validation"),
        unseen=split_file(UNSEEN),
        start=BASE_POLICY,
        beginning=START_SKILLS,
        output=POLICY,
        history=HISTORY,
        library=LIBRARY,
        episodes=TrainedEpisodes(TRAINING_ROLLOUTS, TRAINING_ADVANTAGES),
        probes=PROBES,
        checkpoints=Checkpoints(CHECKPOINTS, store.key),
    )


def help_rank_0(params: Params, store: ResumeStore) -> None:
    """The work of a launcher's other ranks: they train, and rank 0 keeps the records and results."""
    train(training_job(params, store))


def main(stage: Stage) -> None:
    """Write models/policy with its training step, the learning curve, the phrases of every step, the skill
    library, the results of probes, and some of the episodes with their advantages."""
    params = stage.params
    load_tasks(params.environment)  # checks that splits do not overlap
    job = training_job(params, stage.store)
    with stage.progress(params.training.steps, "step") as progress:

        def on_step(step: int, metrics: dict[str, float]) -> None:
            if step:
                progress(step, success=metrics["success"])
            stage.run.log_metrics(metrics, step)

        curve = train(job, on_step)
    write_curve(RESULTS / "training.csv", curve)
    write_selected(SELECTED, select_checkpoint(params.training.keep, curve))
    stage.run.log_file(HISTORY)
    stage.run.log_file(LIBRARY)
    stage.run.log_episodes(TRAINING_ROLLOUTS, BASE_POLICY)
