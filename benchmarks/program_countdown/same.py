"""Compares a program's calls with the built-in agent's, and their log-probabilities with the scorer's."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Step, Task, TokenIds, Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.models.policy import Policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses

AT_ONCE = 1024
"""Calls scored in one pass."""


def built_in_prompts(
    experiment: Experiment, policy: Policy, task: Task, steps: Sequence[Step]
) -> list[TokenIds | None]:
    """The prompts of the built-in agent in an episode in which it gives the responses of these steps."""
    game, prompter = experiment.params.environment.make(), experiment.prompter(policy)
    observation, info = game.reset(task)
    state, found = AgentState(task=task, observation=observation, info=info), list[TokenIds | None]()
    for step in steps:
        found += prompter([state])
        parsed = experiment.parser(policy.decode(step.response_ids))
        observation, *_, info = game.step(parsed.action)
        state = experiment.state_update(state, parsed.thought, parsed.action, observation, info)
    return found


def compare_calls(
    params: Params, policy: Policy, tasks: Sequence[Task], episodes: Sequence[Trajectory]
) -> dict[str, float]:
    """Counts over all calls of a program's episodes.

    Args:
        params: the built-in agent's experiment.
        policy: the policy that played the episodes.
        tasks: the built-in tasks, whose ids are those of the program's.

    Returns:
        The number of ``calls``, of those with ``other_prompts`` than the built-in agent's, and
        ``largest_difference``, the largest difference of a token's log-probability from the scorer's, in
        nats.
    """
    experiment, by_id = Experiment(params), {task.task_id: task for task in tasks}
    other, largest = 0, 0.0
    for episode in episodes:
        expected = built_in_prompts(experiment, policy, by_id[episode.task_id], episode.steps)
        other += sum(step.prompt_ids != prompt for step, prompt in zip(episode.steps, expected, strict=True))
    steps = [step for episode in episodes for step in episode.steps]
    for first in range(0, len(steps), AT_ONCE):
        largest = max(largest, _difference(policy, steps[first : first + AT_ONCE]))
    return {"calls": len(steps), "other_prompts": other, "largest_difference": largest}


def _difference(policy: Policy, steps: Sequence[Step]) -> float:
    """The largest difference of a token's log-probability from the scorer's."""
    packed = pack_responses([(step.prompt_ids, step.response_ids) for step in steps])
    with torch.no_grad():
        scored, _ = ResponseScorer(policy.model)(packed, 1.0)
    drawn = torch.tensor([logprob for step in steps for logprob in step.logprobs])
    return float((scored - drawn).abs().max())
