"""How much of imitation's result is luck: the same demonstrations, other seeds of weights and batches.

    python -m benchmarks.imitation_seeds --folder FOLDER [--params OVERLAY] [--seeds 1 2 3 4 5]
        [--setting "as it is={}"] [--setting "faster={learning_rate: 0.003}"]

A setting changes keys of ``imitation``. It is trained with every seed on the same demonstrations (those of
seed 0 at the setting's rate of detours) and plays every validation game ``--rollouts`` times. The result has
for each setting, over seeds s and games g with x_sg the share won of R rollouts and m_s its mean over G
games:

    V = var_s(m_s)                                               what scatters from seed to seed
    E = mean_s 1/G^2 sum_g x_sg (1 - x_sg) / (R - 1)             its part from the episodes' chance
    T = max(0, V - E)                                            the rest: the luck of training

It also has the interval of V's root by chi-square with S - 1 degrees (seeds taken as normal), and the
two-sided F test of V against the first setting. The loss on validation demonstrations does not depend on the
chance of episodes: its deviation over seeds comes from training alone.

The folder keeps finished trainings, and an interrupted run continues; another setting needs another name.
Games are the experiment's own, from seed 0. The folder's ``train.parquet`` and ``validation.parquet`` are
used if they exist.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from scipy import stats

from benchmarks.lag import changed
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy import Policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.collection import Collector, SyncVectorEnv, requests
from skillpress.training.imitation.dataset import demonstrated
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.imitation.samples import Sample
from skillpress.training.imitation.trainer import imitate

RESULT = Path(__file__).parent / "results" / "imitation_seeds.json"
SPLITS = ("train", "validation")
AT_ONCE = 256
"""Samples scored in one pass."""
POINTS = 20
"""Points of a training's curve."""


def make_tasks(params: Params, folder: Path) -> None:
    """Make the games of both splits."""
    if all((folder / f"{split}.parquet").exists() for split in SPLITS):
        return
    sizes = SplitSizes(params.tasks.train, params.tasks.validation, 1)
    made = list(params.environment.checked_tasks(sizes, params.seed))
    for split in SPLITS:
        write_tasks(folder / f"{split}.parquet", [task for task in made if task.split == split])


def samples(params: Params, folder: Path, split: str) -> Sequence[Sample]:
    """Demonstrations of a split: training's own, or one per validation game, without mistakes."""
    experiment, tasks = Experiment(params), read_tasks(folder / f"{split}.parquet")
    policy = experiment.starting_policy()
    training, section = split == "train", params.imitation
    count = section.demonstrations if training else len(tasks)
    detours = section.detour_rate if training else 0.0

    def show(done: int) -> Any:
        return demonstrate(
            tasks,
            count,
            params.environment,
            experiment.rendering,
            experiment.state_update,
            detours,
            params.seed,
            first=done,
        )

    store = ResumeStore(folder / f"{split}-{count}-{detours}", "demonstrations")
    return demonstrated(show, count, experiment.prompter(policy), policy, store)


def measure(params: Params, folder: Path, rollouts: int) -> dict[str, Any]:
    """One training from ``params.seed``, and its policy's results."""
    torch.set_num_threads(1)
    data = changed(params, seed=0)
    policy = Experiment(params).starting_policy()
    shown, held = samples(data, folder, "train"), samples(data, folder, "validation")
    began = time.process_time()
    limit = params.training.microbatch_tokens
    losses = imitate(policy, shown, params.imitation, params.seed, token_limit=limit)
    seconds = time.process_time() - began
    return {"cpu_seconds": seconds, "curve": curve(losses)} | judge(data, policy, held, folder, rollouts)


def curve(losses: Sequence[float]) -> list[float]:
    """Means of a training over about ``POINTS`` stretches."""
    return [float(part.mean()) for part in np.array_split(np.array(losses), min(POINTS, len(losses)))]


def play(params: Params, policy: Policy, tasks: Sequence[Task], rollouts: int, name: str) -> list[Trajectory]:
    """Episodes of each task, in this process; ``name`` and the seed determine their random numbers."""
    policy.model.eval()
    experiment = Experiment(params)
    agent = experiment.agent(policy, experiment.engine(policy), experiment.evaluation_sampling)
    environments = SyncVectorEnv(lambda: params.environment.make())
    with Collector(environments, agent, params.sampling.slots) as collector:
        played = collector.collect(requests(tasks, rollouts, params.seed, name))
    agent.close()
    return played


def judge(
    params: Params, policy: Policy, held: Sequence[Sample], folder: Path, rollouts: int
) -> dict[str, Any]:
    """The loss on held-out demonstrations, and the games won."""
    tasks = read_tasks(folder / "validation.parquet")
    played = play(params, policy, tasks, rollouts, "imitation seeds")
    return {
        "loss": held_out_loss(policy, held),
        "won": np.array([each.won for each in played], dtype=int).reshape(len(tasks), rollouts).tolist(),
        "steps": float(np.mean([len(each.steps) for each in played])),
    }


def held_out_loss(policy: Policy, held: Sequence[Sample]) -> float:
    """Nats per token."""
    scorer, by_size = ResponseScorer(policy.model), sorted(held, key=lambda sample: len(sample[0]))
    with torch.no_grad():
        parts = [
            scorer(pack_responses(by_size[first : first + AT_ONCE]), 1.0)[0]
            for first in range(0, len(by_size), AT_ONCE)
        ]
    return -float(torch.cat(parts).mean())


def scatter(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """V, E and T of the module's docstring, in points, from a policy's seeds."""
    won = np.array([run["won"] for run in runs], dtype=float)
    shares, (seeds, games, rollouts) = won.mean(2), won.shape
    means, losses = 100 * shares.mean(1), np.array([run["loss"] for run in runs])
    total = float(means.var(ddof=1))
    dice = float(1e4 * (shares * (1 - shares)).sum(1).mean() / (rollouts - 1) / games**2)
    degrees = seeds - 1
    low, high = (float(np.sqrt(total * degrees / stats.chi2.ppf(p, degrees))) for p in (0.975, 0.025))
    return {
        "seeds": seeds,
        "pass_at_1": means.tolist(),
        "mean": float(means.mean()),
        "deviation": total**0.5,
        "deviation_interval": [low, high],
        "deviation_of_dice": dice**0.5,
        "deviation_of_training": max(0.0, total - dice) ** 0.5,
        "loss": float(losses.mean()),
        "loss_deviation": float(losses.std(ddof=1)),
        "steps": float(np.mean([run["steps"] for run in runs])),
    }


def variance_test(one: Mapping[str, Any], other: Mapping[str, Any], key: str) -> float:
    """p of the two-sided F test that two deviations are equal."""
    ratio = (one[key] / other[key]) ** 2
    tail = stats.f.cdf(ratio, one["seeds"] - 1, other["seeds"] - 1)
    return float(2 * min(tail, 1 - tail))


def summary(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """A row for each setting; the others are tested against the first."""
    rows = {
        name: scatter(found) | {"cpu_seconds": float(np.mean([run["cpu_seconds"] for run in found]))}
        for name, found in runs.items()
    }
    first = next(iter(rows.values()))
    for row in rows.values():
        row["p_of_deviation"] = variance_test(row, first, "deviation")
        row["p_of_loss_deviation"] = variance_test(row, first, "loss_deviation")
    return rows


def compare(
    params: Params,
    settings: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    folder: Path,
    rollouts: int,
    processes: int,
) -> dict[str, list[dict[str, Any]]]:
    """Each setting's measurements, seed by seed, several at once."""
    folder.mkdir(parents=True, exist_ok=True)
    make_tasks(params, folder)
    for keys in settings.values():
        for split in SPLITS:
            samples(changed(params, imitation=dict(keys)), folder, split)
    kept = {(name, seed): folder / f"{name}-{seed}.json" for seed in seeds for name in settings}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:  # Polars does not survive a fork
        jobs = {
            key: pool.submit(
                measure, changed(params, seed=key[1], imitation=dict(settings[key[0]])), folder, rollouts
            )
            for key, file in kept.items()
            if not file.exists()
        }
        for key, job in jobs.items():
            write_json(kept[key], job.result())
    return {name: [read_json(kept[name, seed]) for seed in seeds] for name in settings}


def main() -> None:
    """Write the measurements to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[], help="overlays of params.yaml")
    parser.add_argument("--folder", type=Path, required=True, help="keeps games and finished trainings")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--setting", action="append", default=[], help="NAME={key of imitation: value}")
    parser.add_argument("--rollouts", type=int, default=2, help="rollouts per validation game, at least 2")
    parser.add_argument("--processes", type=int, default=1, help="trainings at once")
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    settings = {
        name: yaml.safe_load(keys) for name, keys in (each.split("=", 1) for each in chosen.setting)
    } or {"as it is": {}}
    params = changed(load_params("params.yaml", *chosen.params), seed=0)
    runs = compare(params, settings, chosen.seeds, chosen.folder, chosen.rollouts, chosen.processes)
    result = {
        "settings": {
            name: changed(params, imitation=dict(keys)).imitation.model_dump()
            for name, keys in settings.items()
        },
        "games": {split: len(read_tasks(chosen.folder / f"{split}.parquet")) for split in SPLITS},
        "rollouts": chosen.rollouts,
        "summary": summary(runs),
        "curves": {name: [run["curve"] for run in found] for name, found in runs.items()},
        "load_average_at_end": os.getloadavg()[0],
    }
    write_json(chosen.result, result)


if __name__ == "__main__":
    main()
