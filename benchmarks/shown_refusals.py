"""Cooking's imitation starts with and without the prompt's word ``failed``: the same weights, the same games.

    python -m benchmarks.shown_refusals --start SEED=FOLDER ... [--params OVERLAY] [--games 1000]
        [--result FILE]

A folder is a workspace's: its ``models/base`` plays its test games once, at temperature 1, with
``environment.show_refusals`` and without. No demonstration has an action that is refused, so that imitation
makes the same weights of either. Of ``--games`` games as large a share is hard as of all. Counted are the
games won, those in which an action was refused, and how many of these were won.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.lag import changed
from skillpress.experiment import Experiment
from skillpress.params import Params, load_params
from skillpress.policy.policy import load_policy
from skillpress.rollout import Collector, SyncVectorEnv, requests
from skillpress.storage import write_json
from skillpress.trajectory import Task, Trajectory, read_tasks
from tasks.files import split_file

RESULT = Path(__file__).parent / "results" / "shown_refusals.json"
KINDS = ("simple", "hard")


def kind_of(task: Task) -> str:
    """``simple`` or ``hard``."""
    return "hard" if "hard" in task.stratum else "simple"


def some(tasks: Sequence[Task], count: int) -> list[Task]:
    """The first of each kind, in proportion; ``count`` in all, but for rounding."""
    groups = [[task for task in tasks if kind_of(task) == kind] for kind in KINDS]
    return [task for group in groups for task in group[: round(count * len(group) / len(tasks))]]


def play(params: Params, folder: Path, tasks: Sequence[Task]) -> list[Trajectory]:
    """One episode of each game."""
    experiment, policy = Experiment(params), load_policy(folder / "models" / "base")
    policy.model.eval()
    agent = experiment.agent(policy, experiment.engine(policy), experiment.evaluation_sampling)
    environments = SyncVectorEnv(lambda: experiment.bundle.make(params.environment))
    with Collector(environments, agent, params.sampling.slots) as collector:
        played = collector.collect(requests(tasks, 1, params.seed, "shown refusals"))
    agent.close()
    return list(played)


def counted(played: Sequence[Trajectory]) -> dict[str, int]:
    """What is told of these episodes."""
    refused = [each for each in played if any(step.invalid for step in each.steps)]
    return {
        "episodes": len(played),
        "won": sum(each.won for each in played),
        "with_a_refused_action": len(refused),
        "of_these_won": sum(each.won for each in refused),
    }


def measure(params: Params, folder: Path, games: int) -> dict[str, Any]:
    """The counts of one start, with the word and without, by kind of game."""
    tasks = some(read_tasks(folder / split_file("test")), games)
    kinds = {task.task_id: kind_of(task) for task in tasks}
    found: dict[str, Any] = {}
    for name, shown in (("shown", True), ("not_shown", False)):
        played = play(changed(params, environment={"show_refusals": shown}), folder, tasks)
        found[name] = {"all": counted(played)} | {
            kind: counted([each for each in played if kinds[each.task_id] == kind]) for kind in KINDS
        }
    return found


def main() -> None:
    """Write the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--start", action="append", required=True, metavar="SEED=FOLDER")
    parser.add_argument("--params", default="params/study/cooking.yaml", help="overlay of params.yaml")
    parser.add_argument("--games", type=int, default=1000, help="of each start's test games")
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    params, starts = load_params("params.yaml", chosen.params), {}
    for seed, _, folder in (each.partition("=") for each in chosen.start):
        starts[seed] = measure(changed(params, seed=int(seed)), Path(folder), chosen.games)
        write_json(chosen.result, {"params": chosen.params, "starts": starts})


if __name__ == "__main__":
    main()
