"""The parts of ``training/describing/action_metrics.py``, made from the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task, TokenIds
from skillpress.experiment.experiment import Experiment
from skillpress.learn.imitation.demonstrations import demonstrate
from skillpress.learn.training.describing.action_metrics import ActionMetrics, DemonstratedState
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.models.policy import Policy
from skillpress.play.workers.distributed import Ranks

COMPACT = "compact"
"""The rendering whose responses are few words of a small vocabulary, so that they can be listed."""
CUT, BUDGET = 0.01, 65_536
"""Branches of less probability are not followed, and no more tokens than this are computed in a call."""
DEMONSTRATIONS = 16
"""Over all ranks."""
READ = 1 << 14
"""Responses whose actions are remembered."""


def action_metrics(
    experiment: Experiment, policy: Policy, tasks: Sequence[Task], whole: bool, ranks: Ranks
) -> ActionMetrics | None:
    """What describes the policy's actions in each step.

    Args:
        policy: the one in training, with its weights in place.
        tasks: of training; the first are demonstrated.
        whole: whether every rank has all weights; under ZeRO-3 none has.

    Returns:
        None where responses are text, or the weights are not here.
    """
    params = experiment.params
    if params.policy.rendering != COMPACT or not whole:
        return None

    @lru_cache(READ)
    def read(response: TokenIds) -> str:
        return experiment.parser(policy.decode(response)).action

    enumeration = Enumeration(
        model=policy.model,
        sampling=experiment.training_sampling,
        stop=policy.stop_token_ids,
        read=read,
        cut=CUT,
        budget=BUDGET,
    )
    return ActionMetrics(
        enumeration=enumeration,
        ranks=ranks,
        seed=params.seed,
        demonstrated=_demonstrated(experiment, policy, tasks[:DEMONSTRATIONS][ranks.rank :: ranks.size]),
    )


def _demonstrated(experiment: Experiment, policy: Policy, tasks: Sequence[Task]) -> list[DemonstratedState]:
    """The states and actions of one demonstration of each task, without detours.

    None at all where an environment takes more than a moment to start, where it has no oracle, or where
    prompts go on from responses that were sampled.
    """
    section = experiment.params.environment
    if experiment.bundle.hosting != "in_process" or not section.has_oracle or experiment.state_update.grows:
        return []
    seed = derive(experiment.params.seed, "actions")
    parts = (experiment.bundle, section, experiment.rendering, experiment.state_update)
    steps = list(chain.from_iterable(demonstrate(tasks, len(tasks), *parts, 0.0, seed)))
    prompts = experiment.prompter(policy)([step.state for step in steps])
    return [
        DemonstratedState(prompt, experiment.parser(step.response).action)
        for step, prompt in zip(steps, prompts, strict=True)
        if prompt is not None
    ]
