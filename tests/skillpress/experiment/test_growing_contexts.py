"""Countdown with growing prompts, from the parameters through agent, engine and scorer."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillpress.core.chains import Pairs, extends
from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.experiment.scratch import _context_words
from skillpress.models.policy import Policy
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.rollouts.collection import CollectionStatistics, requests
from skillpress.training.algorithms.batch import Batch
from skillpress.training.imitation.dataset import tokenize, tokenize_growing
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.loop.model_pass import sampled_steps
from skillpress.training.loop.scoring_passes import ScoringPasses

ROOT = Path(__file__).parents[3]


def experiment(**policy: Any) -> Experiment:
    changes = {
        "environment": {"max_steps": 8},
        "policy": {"state_update": "concatenate", "history": 2, "width": 16, "heads": 2, **policy},
        "sampling": {"slots": 5},
    }
    return Experiment(check_params(merge(read_yaml(ROOT / "params.yaml"), changes), "test"))


def tasks_of(made: Experiment, count: int = 4) -> list[Task]:
    tasks = made.params.environment.checked_tasks(SplitSizes(count, 0, 1), 0)
    return [task for task in tasks if task.split == "train"]


def play(made: Experiment, policy: Policy) -> tuple[list[Trajectory], CollectionStatistics]:
    agent = made.agent(policy, made.engine(policy), made.training_sampling)
    with made.collector(agent) as collector:
        return collector.collect(requests(tasks_of(made), 3, 0, "test")), collector.statistics


@pytest.fixture(scope="module")
def played() -> tuple[Policy, list[Trajectory], CollectionStatistics]:
    made = experiment()
    policy = made.starting_policy()
    return policy, *play(made, policy)


def pair(step: Step) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return step.prompt_ids, step.response_ids


Played = tuple[Policy, list[Trajectory], CollectionStatistics]


def test_a_steps_prompt_is_the_last_one_its_response_and_the_new_pool(played: Played) -> None:
    policy, trajectories, _ = played
    assert max(len(trajectory.steps) for trajectory in trajectories) == 8
    for trajectory in trajectories:
        for before, after in pairwise(trajectory.steps):
            assert extends(after.prompt_ids, pair(before))
            said = after.prompt_ids[len(before.prompt_ids) + len(before.response_ids) :]
            assert policy.decode(said) == before.observation.partition("Numbers: ")[2]


def test_each_step_prefills_its_new_tokens_and_one_that_is_fed_again(played: Played) -> None:
    """Rollouts of a task that are played at the same time share their common tokens."""
    _, trajectories, statistics = played
    shared = len({trajectory.steps[0].prompt_ids for trajectory in trajectories})
    first = len(trajectories[0].steps[0].prompt_ids)
    new = sum(
        len(after.prompt_ids) - len(before.prompt_ids) - len(before.response_ids) + 1
        for trajectory in trajectories
        for before, after in pairwise(trajectory.steps)
    )
    assert shared * first < statistics.prefilled_tokens <= len(trajectories) * first + new
    whole = sum(len(step.prompt_ids) for trajectory in trajectories for step in trajectory.steps)
    assert statistics.prefilled_tokens < whole / 3


def test_the_scorers_log_probabilities_of_an_episode_are_the_engines(played: Played) -> None:
    policy, trajectories, _ = played
    samples = Batch.of_steps(sampled_steps(trajectories))
    assert len(samples.pairs.chains) == len(trajectories)
    assert sum(len(rows) for rows in pass_rows(samples.pairs, 300)) == len(samples)
    for scorer in (ResponseScorer(policy.model), PackedScorer(policy.model)):
        found = ScoringPasses(scorer, 1.0, 300, "cpu", scorer.shares_prompts).logprobs(samples)
        np.testing.assert_allclose(found, samples.logprobs, atol=2e-5)


def test_a_prompt_that_outgrows_its_tokens_begins_anew_with_the_last_turns_and_grows_again() -> None:
    made = experiment(context_tokens=20)
    policy = made.starting_policy()
    trajectories, _ = play(made, policy)
    anew = 0
    for trajectory in trajectories:
        for before, after in pairwise(trajectory.steps):
            assert 0 < len(after.prompt_ids) <= 20
            if not extends(after.prompt_ids, pair(before)):
                anew += 1
                assert len(after.prompt_ids) == 1 + 4 + 2, "target, pool and two past actions"
    assert anew
    assert "prompt_too_long" not in {step.invalid for each in trajectories for step in each.steps}


def test_a_policy_made_from_nothing_has_room_for_a_whole_episode(played: Played) -> None:
    policy, _, _ = played
    assert policy.context_length == (1 + 4 + 2) + 7 * (4 + 4) + 4
    assert experiment(context_tokens=20).starting_policy().context_length == 20 + 4
    assert experiment(state_update="window").starting_policy().context_length == (1 + 4 + 2) + 4


def test_a_rendering_without_continuations_is_refused() -> None:
    made = experiment()
    words = replace(made.params.environment.vocabulary(2), continuation_words=None)
    with pytest.raises(ParamsError, match=r"policy\.state_update: 'concatenate' needs a rendering"):
        _context_words(words, made.params)


def test_what_is_imitated_are_the_prompts_that_the_policy_will_see(played: Played) -> None:
    policy, _, _ = played
    made = experiment()
    shown = list(
        demonstrate(tasks_of(made), 6, made.params.environment, made.rendering, made.state_update, 0.0, 0)
    )
    assert sum(map(len, shown)) > len(shown)
    samples = tokenize_growing(shown, made.prompter(policy), policy)
    assert [len(chain) for chain in Pairs.of(samples).chains] == [len(steps) for steps in shown]
    anew = tokenize([step for steps in shown for step in steps], made.prompter(policy), policy)
    assert [response for _, response in samples] == [response for _, response in anew]
    assert samples[0] == anew[0]


def test_where_a_detour_was_played_a_prompt_goes_on_from_it_and_not_from_what_is_learned(
    played: Played,
) -> None:
    policy, _, _ = played
    made = experiment()
    shown = list(
        demonstrate(tasks_of(made), 6, made.params.environment, made.rendering, made.state_update, 0.0, 0)
    )
    advised = [[replace(step, response="reset", played=step.response) for step in steps] for steps in shown]
    plain, learned = (tokenize_growing(steps, made.prompter(policy), policy) for steps in (shown, advised))
    assert [prompt for prompt, _ in learned] == [prompt for prompt, _ in plain]
    assert {response for _, response in learned} == {policy.encode_response("reset")}
