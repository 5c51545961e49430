"""What each shaping pays for the routine over the shortcut, by calculation: no policy is trained or asked.

    python -m studies.critical.predict                    params/critical
    python -m studies.critical.predict further            params/critical_further

For every cell and method of the plan, both oracles play training tasks, the routine with probability
p, in batches of the size that training has. The E-step of training (``RewardShaper``) fits its dictionary to
them and charges them. The preference is

    Delta(p) = penalty of a shortcut - penalty of a routine,    in units of reward,

the mean over groups that hold both kinds, after the buffer has filled with batches of the same p. Both kinds
win, so this is all that tells them apart in a group: GRPO raises the share of routines where Delta > 0 and
lowers it where Delta < 0. The start policy does both equally often, so the predicted sign is that of
Delta(1/2), or none below ``INDIFFERENT`` of a success. Where Delta changes its sign with p, what prevails
pays for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from skillpress.core.arguments import CommandParser
from skillpress.core.interface import Environment
from skillpress.core.seeds import derive
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import Projection
from skillpress.environments.workshop.oracle import routine, shortcut
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.evaluation.analysis.reuse_conditions import INDIFFERENT
from skillpress.evaluation.study.plan import read_plan
from skillpress.experiment.params import Params, check_params
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.runs import planned_runs
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.loop.reward_shaping import RewardShaper

Floats = NDArray[np.float64]

PLAN = ROOT / "params" / "critical"
FURTHER = ROOT / "params" / "critical_further"
RECORD = ROOT / "studies" / "critical"
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""p, the shares of routines at which the preference is calculated."""
BATCHES = 6
"""Batches of a calculation; the first two only fill the buffer."""
UNCOUNTED = 2
SEEDS = (0, 1)
"""Seeds of the calculation, which the plan's runs do not use."""


@dataclass(frozen=True)
class Played:
    """A batch of won episodes."""

    tasks: list[Task]
    trajectories: list[Trajectory]
    by_routine: NDArray[np.bool_]
    """[trajectories] whether the routine won."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the predictions of a plan into studies/critical/; returns the exit code."""
    parser = CommandParser(prog="python -m studies.critical.predict", description=__doc__)
    parser.add_argument("plan", nargs="?", choices=("first", "further"), default="first", help="which plan")
    folder, file = {"first": (PLAN, "predictions.json"), "further": (FURTHER, "further.json")}[
        parser.parse_args(arguments).plan
    ]
    plan = read_plan(folder)
    runs = planned_runs(plan, plan.chosen(), ROOT)
    cells = {(run.benchmark, run.method): check_params(dict(run.params), source=run.name) for run in runs}
    found: dict[str, dict[str, dict[str, object]]] = {}
    for (cell, method), params in tqdm(cells.items(), unit="cell", disable=not sys.stderr.isatty()):
        if getattr(params.algorithm, "scale", "none") != "none":
            continue  # the group's deviation cancels the size of a preference
        by_share = {share: preference(params, share) for share in SHARES}
        at_start = by_share[0.5]
        found.setdefault(cell, {})[method] = {
            "preference": round(at_start, 3),
            "sign": sign(at_start, params.reward.success),
            "by_share": {str(share): round(value, 3) for share, value in by_share.items()},
        }
    write_json(RECORD / file, found)
    return 0


def sign(preference: float, success: float) -> str:
    """The predicted sign of a preference, where a success is rewarded with ``success``."""
    return "0" if abs(preference) < INDIFFERENT * success else "+" if preference > 0 else "-"


def preference(params: Params, share: float, projection: Projection | None = None) -> float:
    """Delta(p), the mean over the seeds of the calculation.

    Args:
        share: p, the probability of a routine.
        projection: names the skills of the same episodes in another way than the environment's φ.
    """
    named = projection or params.environment.make_projection()
    return float(np.mean([_preference(params, share, named, seed) for seed in SEEDS]))


def _preference(params: Params, share: float, projection: Projection, seed: int) -> float:
    shaper = RewardShaper(
        projection=projection,
        skills=params.skills,
        reward=params.reward,
        max_steps=params.environment.max_steps,
        ranks=Ranks(),
        seed=seed,
    )
    found: list[float] = []
    for number, played in enumerate(batches(params, share, seed)):
        penalty = shaper(played.tasks, played.trajectories).penalty
        if number >= UNCOUNTED:
            found += differences(penalty, played.by_routine, params.training.rollouts_per_task)
    return float(np.mean(found))


def differences(penalty: Floats, by_routine: NDArray[np.bool_], size: int) -> list[float]:
    """For each group of ``size`` episodes that holds both kinds, what its shortcuts pay more on average."""
    return [
        float(paid[~routines].mean() - paid[routines].mean())
        for paid, routines in zip(penalty.reshape(-1, size), by_routine.reshape(-1, size), strict=True)
        if 0 < routines.sum() < size
    ]


def batches(params: Params, share: float, seed: int) -> Iterator[Played]:
    """Batches as training plays them: groups of one task each, in which every episode wins."""
    section = params.environment
    assert isinstance(section, WorkshopParameters), "the plan's cells are workshops"
    sizes = params.tasks.make()
    tasks = [task for task in section.checked_tasks(sizes, seed) if task.split == "train"]
    playing = section.make()
    random = Random(derive(seed, "predictions", str(share)))
    for _ in range(BATCHES):
        drawn = random.sample(tasks, params.training.tasks_per_step)
        played = [task for task in drawn for _ in range(params.training.rollouts_per_task)]
        by_routine = [random.random() < share for _ in played]
        trajectories = [
            follow(playing, task, (routine if kind else shortcut)(task, random.getrandbits(32), section))
            for task, kind in zip(played, by_routine, strict=True)
        ]
        yield Played(played, trajectories, np.array(by_routine))


def follow(environment: Environment, task: Task, actions: Sequence[str]) -> Trajectory:
    """The episode of these actions."""
    environment.reset(task)
    steps = []
    for action in actions:
        observation, terminated, truncated, info = environment.step(action)
        assert info.invalid is None, f"an oracle's action is refused: {action}"
        steps.append(
            Step(
                prompt_ids=(),
                response_ids=(),
                logprobs=np.zeros(0, np.float32),
                thought="",
                action=info.action or action,
                observation=observation,
                invalid=None,
                reward_parts=(),
            )
        )
    assert info.won, f"an oracle did not win {task.task_id}"
    return Trajectory(
        task_id=task.task_id,
        group_id=task.task_id,
        rollout_index=0,
        steps=tuple(steps),
        won=True,
        terminated=terminated,
        truncated=truncated,
        outcome="won",
        policy_version=0,
        seed=0,
    )


if __name__ == "__main__":
    sys.exit(main())
