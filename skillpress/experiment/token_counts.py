"""Number of tokens of an action, before and after domain words became single tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.models.policy.domain_tokens import mean_tokens
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.training.imitation.demonstrations import demonstrate

TASKS = 32
"""The most tasks whose demonstrations are counted."""


def token_counts(experiment: Experiment, after: str, tasks: Sequence[Task]) -> dict[str, float]:
    """Mean tokens of the actions that an oracle takes in these tasks, by the tokenizer of ``policy.model``
    and by the tokenizer of the folder ``after``. Empty if there is no oracle, or if no word becomes a
    token."""
    section, some = experiment.params.environment, tasks[:TASKS]
    if not (experiment.domain_words and section.has_oracle):
        return {}
    shown = demonstrate(
        tasks=some,
        count=len(some),
        section=section,
        rendering=experiment.rendering,
        update_state=experiment.state_update,
        detour_rate=0.0,
        seed=experiment.params.seed,
    )
    actions = [experiment.parser(step.response).action for steps in shown for step in steps]
    models = {"before": experiment.params.policy.model, "after": after}
    return {
        f"tokens_per_action/{when}": mean_tokens(load_pretrained(model, "bfloat16").tokenizer, actions)
        for when, model in models.items()
    }


def token_counts_of_start(params: Params, policy: Path, tasks: Path) -> dict[str, float]:
    """:func:`token_counts` of a saved policy and a file of tasks."""
    return token_counts(Experiment(params), str(policy), read_tasks(tasks))
