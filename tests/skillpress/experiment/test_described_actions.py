"""The parts that describe actions in training, made from parameters."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from skillpress.core.trajectory import Task
from skillpress.environments.countdown.rules import solutions
from skillpress.environments.section import SplitSizes
from skillpress.experiment.described_actions import DEMONSTRATIONS, action_metrics
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.models.policy import Policy
from skillpress.rollouts.workers.distributed import Ranks


def default(repository: Path, overlay: str = "params/smoke.yaml") -> tuple[Experiment, Policy, list[Task]]:
    experiment = Experiment(load_params(repository / "params.yaml", repository / overlay))
    section = experiment.params.environment
    tasks = section.checked_tasks(SplitSizes(40, 0, 0), 0)
    return experiment, experiment.starting_policy(), list(islice(tasks, 40))


def test_the_default_experiment_follows_the_oracle_through_a_few_tasks(repository: Path) -> None:
    experiment, policy, tasks = default(repository)
    made = action_metrics(experiment, policy, tasks, True, Ranks())
    assert made is not None
    shown = {policy.decode(state.prompt): state.action for state in made.demonstrated}
    assert len(shown) == sum(len(task.spec["numbers"]) - 1 for task in tasks[:DEMONSTRATIONS])
    for prompt, action in shown.items():
        target, *numbers = (int(word) for word in prompt.split() if word.isdigit())
        pool = tuple(numbers)
        ways = solutions(pool, target, experiment.params.environment.max_target)
        assert action[0] in {way[0].operator for way in ways}, (prompt, action)
    found = made([], 1)
    assert 0 < found["actions/oracle"] < 1


def test_every_rank_has_its_share_of_the_demonstrations(repository: Path) -> None:
    experiment, policy, tasks = default(repository)
    parts = [
        action_metrics(experiment, policy, tasks, True, ranks)
        for ranks in (Ranks(), Ranks(0, 2), Ranks(1, 2))
    ]
    counts = [len(part.demonstrated) for part in parts if part is not None]
    assert counts[0] == counts[1] + counts[2] and min(counts) > 0


def test_there_is_none_for_text_nor_where_no_rank_has_the_weights(repository: Path) -> None:
    experiment, policy, tasks = default(repository)
    assert action_metrics(experiment, policy, tasks, False, Ranks()) is None
    prose = Experiment(load_params(repository / "params.yaml", repository / "params" / "smollm2.yaml"))
    assert action_metrics(prose, policy, tasks, True, Ranks()) is None
