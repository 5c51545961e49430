"""The most work of an experiment: episodes, their steps, and the tokens that pass through the model.

Every figure comes from the parameters alone: every episode and every demonstration lasts T steps, every
prompt fills its budget, and every response its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skillpress.experiment.params import Params


@dataclass(frozen=True)
class Work:
    """The most work of one part of an experiment."""

    episodes: int
    environment_steps: int
    prompt_tokens: int
    sampled_tokens: int

    @property
    def tokens(self) -> int:
        """Number of tokens that pass through the model."""
        return self.prompt_tokens + self.sampled_tokens


def work(params: Params) -> dict[str, Work]:
    """Part of the experiment to its work; the explorer's episodes have no tokens."""
    evaluated = params.evaluation.runs * params.evaluation.votes * params.tasks.test
    training = params.training
    most_played = 1 + params.algorithm.select.most_refills
    tried_again = min(params.experience.most_per_group, training.rollouts_per_task)
    group = training.rollouts_per_task + tried_again
    episodes = most_played * training.steps * training.tasks_per_step * group
    validations = -(-training.steps // training.checkpoint_every) if training.keep == "best" else 0
    probe, splits = training.probe, 2 if params.tasks.unseen else 1
    probes = len({*range(0, training.steps, probe.every), training.steps}) if probe is not None else 0
    probed = probes * splits * probe.tasks if probe is not None else 0
    return {
        "collect_rollouts": _work(params, params.rollouts.tasks * params.rollouts.per_task),
        "train_policy": _work(params, episodes),
        "train_policy: validation": _work(params, validations * params.tasks.validation),
        "train_policy: probes": _work(params, probed),
        "play_floors: explorer": Work(evaluated, evaluated * params.environment.max_steps, 0, 0),
        "play_floors: start": _work(params, evaluated),
        "evaluate_policy": _work(params, evaluated),
    }


def replayed(params: Params) -> Work:
    """The episodes that training learns from again; they need no sampling and no environment."""
    training = params.training
    if training.replay is None:
        return Work(episodes=0, environment_steps=0, prompt_tokens=0, sampled_tokens=0)
    groups = max(training.steps - 1, 0) * training.replay.groups
    return _work(params, groups * training.rollouts_per_task)


def _work(params: Params, episodes: int) -> Work:
    steps = episodes * params.environment.max_steps
    return Work(episodes, steps, steps * params.policy.context_tokens, steps * params.sampling.max_new_tokens)


def imitated(params: Params) -> Work:
    """Imitation's demonstrations. No parameter says how many thoughts or recorded episodes there are."""
    return _work(params, params.imitation.demonstrations)


def _after_the_first_update(params: Params) -> float:
    """The largest share of a step's tokens that its first update does not learn from."""
    training, steps = params.training, params.environment.max_steps
    samples = training.tasks_per_step * training.rollouts_per_task * steps
    size = training.minibatch_size
    return 1 - 1 / (-(-samples // size) if size else training.minibatches)


def scored(params: Params) -> dict[str, int]:
    """Tokens of training's passes through the model without a backward pass, by the reason for the pass."""
    algorithm = params.algorithm
    learned = work(params)["train_policy"].tokens + replayed(params).tokens
    shares: dict[str, float] = {  # of all tokens that training learns from
        "by the reference policy": algorithm.kl_share if algorithm.kl_coefficient else 0,
        "by the learner, for importance weights": _after_the_first_update(params)
        if algorithm.importance_weights is not None
        else 0,
        "by the learner, for trajectories' ratios": algorithm.whole_trajectories,
        "for the values of states": algorithm.needs_values,
    }
    return {reason: math.ceil(learned * share) for reason, share in shares.items() if share}
