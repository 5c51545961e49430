"""The parts of ``training/describing/action_metrics.py``, made from the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task, TokenIds
from skillpress.experiment.experiment import Experiment
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.models.policy import Policy
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.loop.describing.action_metrics import ActionMetrics, DemonstratedState

COMPACT = "compact"
"""The rendering whose responses are a few words of a small vocabulary, so they can be listed."""
CUT, BUDGET = 0.01, 65_536
"""The least probability of a branch that is followed, and the most tokens that a call computes."""
DEMONSTRATIONS = 16
"""Number of demonstrations over all ranks."""
READ = 1 << 14
"""Number of responses whose actions are cached."""


def action_metrics(
    experiment: Experiment, policy: Policy, tasks: Sequence[Task], whole: bool, ranks: Ranks
) -> ActionMetrics | None:
    """The metrics that describe the policy's actions in each step.

    Args:
        policy: the policy in training, with its weights in place.
        tasks: the training tasks; the first of them are demonstrated.
        whole: whether every rank has all weights; under ZeRO-3 no rank has.

    Returns:
        None if responses are text, or if this rank does not have all weights.
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

    The list is empty if the environment is slow to start, if it has no oracle, or if prompts extend sampled
    responses.
    """
    section = experiment.params.environment
    if section.hosting != "in_process" or not section.has_oracle or experiment.state_update.grows:
        return []
    seed = derive(experiment.params.seed, "actions")
    parts = (section, experiment.rendering, experiment.state_update)
    steps = list(chain.from_iterable(demonstrate(tasks, len(tasks), *parts, 0.0, seed)))
    prompts = experiment.prompter(policy)([step.state for step in steps])
    return [
        DemonstratedState(prompt, experiment.parser(step.response).action)
        for step, prompt in zip(steps, prompts, strict=True)
        if prompt is not None
    ]
