"""The most episodes and updates of an experiment, by its parameters alone."""

from __future__ import annotations

from skillpress.experiment.params import Params


def episodes(params: Params) -> dict[str, int]:
    """Part of the experiment to the most episodes that it plays."""
    training, evaluation = params.training, params.evaluation
    evaluated = evaluation.runs * evaluation.votes * params.tasks.test
    most_played = 1 + params.algorithm.select.most_refills
    group = training.rollouts_per_task + min(params.experience.most_per_group, training.rollouts_per_task)
    validations = -(-training.steps // training.checkpoint_every) if training.keep == "best" else 0
    probe, splits = training.probe, 2 if params.tasks.unseen else 1
    probes = len({*range(0, training.steps, probe.every), training.steps}) if probe is not None else 0
    played = {
        "collect_rollouts": params.rollouts.played(params.tasks.train) * params.rollouts.per_task,
        "train_policy": most_played * training.steps * training.tasks_per_step * group,
        "train_policy: validation": validations * params.tasks.validation,
        "train_policy: probes": probes * splits * probe.tasks if probe is not None else 0,
        "play_floors: explorer": evaluated,
        "play_floors: start": evaluated,
        "evaluate_policy": evaluated,
    }
    return {part: count for part, count in played.items() if count}


def updates_per_step(params: Params) -> int:
    """The most updates of one training step; fewer if episodes end early and ``minibatch_size`` counts."""
    training = params.training
    if not training.minibatch_size:
        return training.minibatches
    replayed = training.replay.groups if training.replay is not None else 0
    groups = training.tasks_per_step + replayed
    samples = groups * training.rollouts_per_task * params.environment.max_steps
    return -(-samples // training.minibatch_size)
