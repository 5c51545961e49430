"""Cooking's imitation starts with and without the prompt's word ``failed``: same weights, same games.

    python -m benchmarks.shown_refusals --start SEED=FOLDER ... [--params OVERLAY] [--games 1000]
        [--result FILE]

The policy ``models/base`` of a workspace folder plays the folder's test games once, at temperature 1, with
``environment.show_refusals`` and without. No demonstration has a refused action, so imitation makes the same
weights either way. The ``--games`` games have the same share of hard ones as all games. The result counts the
games won, the games in which an action was refused, and how many of these were won.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.imitation_seeds import play
from benchmarks.lag import changed
from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.textworld_cooking.tasks import STRATA
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy.policy import load_policy
from skillpress.pipeline.files import split_file

RESULT = Path(__file__).parent / "results" / "shown_refusals.json"


def some(tasks: Sequence[Task], count: int) -> list[Task]:
    """The first tasks of each kind, in proportion; ``count`` in total, except for rounding."""
    groups = [[task for task in tasks if task.stratum == kind] for kind in STRATA]
    return [task for group in groups for task in group[: round(count * len(group) / len(tasks))]]


def counted(played: Sequence[Trajectory]) -> dict[str, int]:
    """The counts over these episodes."""
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
    policy = load_policy(folder / "models" / "base")
    kinds = {task.task_id: task.stratum for task in tasks}
    found: dict[str, Any] = {}
    for name, shown in (("shown", True), ("not_shown", False)):
        as_shown = changed(params, environment={"show_refusals": shown})
        played = play(as_shown, policy, tasks, 1, "shown refusals")
        found[name] = {"all": counted(played)} | {
            kind: counted([each for each in played if kinds[each.task_id] == kind]) for kind in STRATA
        }
    return found


def main() -> None:
    """Write the measurement to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--start", action="append", required=True, metavar="SEED=FOLDER")
    parser.add_argument("--params", default="params/study/cooking.yaml", help="overlay of params.yaml")
    parser.add_argument("--games", type=int, default=1000, help="number of test games per start")
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    params, starts = load_params("params.yaml", chosen.params), {}
    for seed, _, folder in (each.partition("=") for each in chosen.start):
        starts[seed] = measure(changed(params, seed=int(seed)), Path(folder), chosen.games)
        write_json(chosen.result, {"params": chosen.params, "starts": starts})


if __name__ == "__main__":
    main()
