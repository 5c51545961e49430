"""Every algorithm of the registry on one experiment: same start, same number of environment steps.

    python -m benchmarks.methods [--params OVERLAY] [--algorithms grpo gigpo] [--steps 50] [--seeds 0 1 2]
        [--scales 0.5 1 2] [--tuning-seed 3] [--tasks 1024] [--processes 1] [--folder FOLDER]

For each seed tasks are made and a policy is imitated once. From that start each algorithm trains, with its
overlay ``params/<name>.yaml`` over the experiment (including ``grpo``). All may play the same number of
environment steps: the number that ``grpo`` plays in ``--steps`` training steps of the seed, at the
experiment's own learning rate. The others stop after the first training step that reaches it; episodes that a
selection leaves out count too.

Each algorithm's learning rate is tuned: each of ``--scales`` times the experiment's rate is tried with a
separate seed, whose tasks, start and training are not reported. The scale with the largest Pass@1 on that
seed's validation tasks is chosen, and only it is trained with the reported seeds. Pass@1 is the share of
episodes won; the area is that under the curve of success against step budget. Intervals are 95%, over seeds
and tasks (``evaluation/trainings.py``). With a single seed they are over tasks alone, which says nothing
about other trainings. Differences are to ``grpo``, task by task. Seconds per step exclude the first step and
checkpoints. Memory is the largest amount that a process held. Core seconds are processor time of the
training's first process, checkpoints included; on a busy machine they say more than seconds.

Trainings run one after the other, each in its own process. With ``--folder`` all finished results are kept,
and a run that was killed continues from its last training step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from skillpress.core.intervals import Z_95
from skillpress.core.registry import ALGORITHMS
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.statistics import evaluation_steps
from skillpress.evaluation.statistics.episodes import episode_table
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import Params, check_params, load_params, merge, read_yaml
from skillpress.experiment.training import TrainingJob, job_in, train
from skillpress.rollouts.collection import requests
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes

ROOT = Path(__file__).resolve().parents[1]
BASELINE = "grpo"
"""Its environment steps are the budget, and the others are compared with it."""
ENDLESS = 1_000_000
"""Training steps of a run that ends when its environment steps are used up."""
FIGURES = ("pass_at_1", "area")
Rows = Sequence[Mapping[str, Any]]
"""One row per task of a split: ``task_id`` and the figures."""


class SpentError(Exception):
    """The environment steps of a training are used up."""


class Unsampled(TrainedEpisodes):
    """Writes no sample of episodes: the steps to sample are not known before the end."""

    def join(self, parts: Sequence[TrainedEpisodes]) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Variant:
    """One training."""

    name: str
    scale: float
    """Multiple of the experiment's learning rate."""
    params: Params
    seed_folder: Path
    """The folder with the seed's tasks and start."""

    @property
    def folder(self) -> Path:
        """The training's own folder."""
        return self.seed_folder / f"{self.name}-{self.scale:g}"

    def with_steps(self, steps: int) -> TrainingJob:
        """The job with this number of training steps. A shorter job is the beginning of a longer one, and its
        checkpoints serve both."""
        return job_in(
            self.folder,
            changed(self.params, {"training": {"steps": steps}}),
            self.seed_folder,
            key=f"{self.name} {self.scale:g}",
            validation="validation.parquet",
            episodes=Unsampled,
        )


def changed(params: Params, *overlays: Mapping[str, Any]) -> Params:
    """The experiment with some keys changed."""
    values = params.model_dump(mode="json")
    for overlay in overlays:
        values = merge(values, overlay)
    return check_params(values, "benchmark")


def variant(params: Params, name: str, scale: float, seed_folder: Path) -> Variant:
    """An algorithm at a learning rate. Its overlay may change other sections too."""
    overlay = {} if name == BASELINE else read_yaml(ROOT / "params" / f"{name}.yaml")
    rate = params.training.learning_rate * scale
    own = {"training": {"learning_rate": rate, "checkpoint_every": 1, "keep": "last", "lag": 0}}
    return Variant(name, scale, changed(params, overlay, own), seed_folder)


def prepare(params: Params, folder: Path) -> None:
    """Make the tasks and the start of one seed."""
    if (folder / "start").is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sizes = SplitSizes(params.tasks.train, params.tasks.validation, params.tasks.test)
    made = list(params.environment.checked_tasks(sizes, params.seed))
    for split in ("train", "validation", "test"):
        write_tasks(folder / f"{split}.parquet", [task for task in made if task.split == split])
    store = ResumeStore(folder / "imitation", "imitation")
    job = ImitationJob(params, folder / "train.parquet", output=folder / "start", store=store)
    imitate_demonstrations(job, lambda rank, progress: None)


def trained(run: Variant, steps: int, budget: float | None) -> dict[str, Any]:
    """One training with this number of steps or, given a budget of environment steps, until it is used up."""
    run.folder.mkdir(parents=True, exist_ok=True)
    played = Played.read(run.folder / "played.json")
    last = steps if budget is None else last_step(run, budget, played)
    curve = train(run.with_steps(last), played.report)
    parts = ("rollout", "shaping", "update")
    seconds = [sum(row[f"seconds/{part}"] for part in parts) for row in curve[1:] or curve]
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "training_steps": len(curve),
        "environment_steps": sum(row["environment_steps"] for row in curve),
        "seconds_per_step": statistics.fmean(seconds),
        "core_seconds_per_step": statistics.fmean(played.core_seconds),
        "peak_memory_mb": max(usage.ru_maxrss for usage in usages) / 1024,
        "load": os.getloadavg()[0],
    }


@dataclass
class Played:
    """The costs of a training's steps so far, saved beside it so that a killed training can continue."""

    path: Path
    steps: dict[str, tuple[float, float]]
    """Training step to (environment steps, seconds of processor time)."""
    before: float = field(default_factory=time.process_time)
    """Processor time of this process when the last step ended."""

    @classmethod
    def read(cls, path: Path) -> Played:
        """The costs in a file; empty if there is no file."""
        return cls(path, read_json(path) if path.exists() else {})

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add a step."""
        now = time.process_time()
        self.steps[str(step)] = (metrics["environment_steps"], now - self.before)
        self.before = now
        write_json(self.path, self.steps)

    def last(self, budget: float) -> int | None:
        """The step in which the budget of environment steps was reached; None if it was not yet."""
        sums = accumulate(self.steps[str(step)][0] for step in range(1, len(self.steps) + 1))
        return next((step for step, count in enumerate(sums, 1) if count >= budget), None)

    @property
    def core_seconds(self) -> list[float]:
        """[steps] without the first step, which starts the engine."""
        found = [seconds for _, (_, seconds) in sorted(self.steps.items(), key=lambda item: int(item[0]))]
        return found[1:] or found


def last_step(run: Variant, budget: float, played: Played) -> int:
    """The training step in which the budget is used up; trains up to its checkpoint."""

    def report(step: int, metrics: Mapping[str, float]) -> None:
        played.report(step, metrics)
        if played.last(budget) is not None:
            raise SpentError

    if played.last(budget) is None:
        with suppress(SpentError):
            train(run.with_steps(ENDLESS), report)
    found = played.last(budget)
    assert found is not None, "an endless training ends when its budget is spent"
    return found


def scores(params: Params, policy: Path, tasks: Path, folder: Path) -> Rows:
    """The policy's results on each task: means over its episodes."""
    longest, votes = params.environment.max_steps, params.evaluation.votes
    wanted = requests(read_tasks(tasks), votes, params.seed, tasks.stem, policy="trained")
    job = CollectionJob(
        params=params,
        sampling="evaluation",
        plays=[Play(policy, wanted)],
        store=ResumeStore(folder / tasks.stem, tasks.stem),
    )
    folder.mkdir(parents=True, exist_ok=True)
    played = folder / f"played-{tasks.name}"
    play_episodes(job, played, lambda count: None)
    episodes = episode_table(evaluation_steps(scan_rollouts(played)))
    within = pl.col("won") * (longest + 1 - pl.col("length")) / longest
    rows = episodes.group_by("task_id").agg(pass_at_1=pl.col("won").mean(), area=within.mean())
    return rows.sort("task_id").to_dicts()


def kept(path: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of the work: read if it was done before, otherwise computed now in a separate process."""
    if not path.exists():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            write_json(path, pool.submit(work, *arguments).result())
    return read_json(path)


def estimate(seeds: Sequence[Rows], figure: str) -> dict[str, Any]:
    """A figure's mean with its interval."""
    found = Scores.of([pl.DataFrame(rows).select("task_id", score=pl.col(figure)) for rows in seeds])
    mean, over = found.mean(), over_trainings(found)
    if over is not None:
        return {"mean": mean, "low": over.low, "high": over.high, "p": over.p, "over": "seeds and tasks"}
    values = found.values[~np.isnan(found.values)]
    half = Z_95 * float(values.std(ddof=1)) / len(values) ** 0.5
    return {"mean": mean, "low": mean - half, "high": mean + half, "p": None, "over": "tasks"}


def less(first: Sequence[Rows], second: Sequence[Rows]) -> list[Rows]:
    """``first`` minus ``second``, task by task."""
    return [
        [
            {"task_id": row["task_id"], **{figure: row[figure] - other[figure] for figure in FIGURES}}
            for row, other in zip(mine, theirs, strict=True)
        ]
        for mine, theirs in zip(first, second, strict=True)
    ]


@dataclass(frozen=True)
class Comparison:
    """All trainings of some algorithms. Results in the folder are not computed again."""

    steps: int
    """Training steps of ``grpo``, which determine the budget."""
    folder: Path

    def training(self, name: str, scale: float, experiment: Params) -> dict[str, Any]:
        """The cost of a training; ``grpo``'s cost in the same experiment is its budget."""
        budget = None
        if (name, scale) != (BASELINE, 1.0):
            budget = self.training(BASELINE, 1.0, experiment)["environment_steps"]
        run = self._variant(name, scale, experiment)
        run.folder.mkdir(parents=True, exist_ok=True)
        done: dict[str, Any] = kept(run.folder / "training.json", trained, run, self.steps, budget)
        return done

    def scores(self, name: str, scale: float, experiment: Params, split: str) -> Rows:
        """The trained policy's results on the tasks of a split."""
        run = self._variant(name, scale, experiment)
        tasks = run.seed_folder / f"{split}.parquet"
        where, policy = run.folder / f"{split}.json", run.folder / "policy"
        found: Rows = kept(where, scores, run.params, policy, tasks, run.folder)
        return found

    def start(self, experiment: Params) -> Rows:
        """The results of the common start policy on the test tasks."""
        own = self._seed_folder(experiment)
        arguments = (experiment, own / "start", own / "test.parquet", own / "start-test")
        found: Rows = kept(own / "start-test.json", scores, *arguments)
        return found

    def _variant(self, name: str, scale: float, experiment: Params) -> Variant:
        return variant(experiment, name, scale, self._seed_folder(experiment))

    def _seed_folder(self, experiment: Params) -> Path:
        folder = self.folder / f"seed-{experiment.seed}"
        prepare(experiment, folder)
        return folder


def tuned(comparison: Comparison, tuning: Params, name: str, scales: Sequence[float]) -> dict[str, Any]:
    """The chosen scale, and all scales that were tried, with the tuning seed."""
    found: dict[float, dict[str, Any]] = {}
    for scale in scales:
        done = comparison.training(name, scale, tuning)
        success = estimate([comparison.scores(name, scale, tuning, "validation")], "pass_at_1")
        found[scale] = {**done, "validation": success}
    chosen = max(found, key=lambda scale: found[scale]["validation"]["mean"])
    return {"chosen_scale": chosen, "tried": {f"{scale:g}": each for scale, each in found.items()}}


def compare(
    comparison: Comparison,
    experiments: Sequence[Params],
    tuning: Params,
    names: Sequence[str],
    scales: Sequence[float],
) -> dict[str, Any]:
    """For every algorithm: the scales tried, the one chosen, and its results with each reported seed."""
    found: dict[str, Any] = {}
    tests: dict[str, list[Rows]] = {}
    for name in dict.fromkeys([BASELINE, *names]):
        tries = tuned(comparison, tuning, name, scales)
        scale = tries["chosen_scale"]
        done = [comparison.training(name, scale, each) for each in experiments]
        tests[name] = [comparison.scores(name, scale, each, "test") for each in experiments]
        apart = less(tests[name], tests[BASELINE])  # all 0 for grpo itself
        found[name] = {
            **{figure: estimate(tests[name], figure) for figure in FIGURES},
            "less_grpo": {figure: estimate(apart, figure) for figure in FIGURES}
            if name != BASELINE
            else None,
            **{
                figure: statistics.fmean(each[figure] for each in done)
                for figure in ("seconds_per_step", "core_seconds_per_step")
            },
            "peak_memory_mb": max(each["peak_memory_mb"] for each in done),
            "trainings": done,
            **tries,
        }
    start = [comparison.start(each) for each in experiments]
    return {"start": {figure: estimate(start, figure) for figure in FIGURES}, "algorithms": found}


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scales", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--tuning-seed", type=int, default=3, help="the seed with which the scales are tried")
    parser.add_argument("--tasks", type=int, default=1024, help="validation tasks, and as many test tasks")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keeps tasks, starts and trainings")
    chosen = parser.parse_args()
    if chosen.tuning_seed in chosen.seeds:
        parser.error(f"--tuning-seed {chosen.tuning_seed} is among --seeds; choose an unreported one")
    own = {"processes": chosen.processes, "tasks": {"validation": chosen.tasks, "test": chosen.tasks}}
    params = changed(load_params("params.yaml", *chosen.params), own)
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.folder or Path(name)).resolve()
        tuning, *experiments = (
            changed(params, {"seed": seed}) for seed in (chosen.tuning_seed, *chosen.seeds)
        )
        comparison = Comparison(chosen.steps, folder)
        result = compare(comparison, experiments, tuning, chosen.algorithms, chosen.scales)
    setting = {key: value for key, value in vars(chosen).items() if key != "folder"}
    json.dump({**result, "setting": setting, "cores": os.cpu_count()}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
