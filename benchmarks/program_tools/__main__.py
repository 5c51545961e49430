"""A program with a shell and an editor learns from a foreign log, from its own successes, and by GRPO.

    python -m benchmarks.program_tools [--seeds 0 1] [--folder FOLDER] [--result FILE]

The program (``agent.py``) repairs small repositories. It owns its loop and asks a small policy made from
scratch over HTTP. For each seed:

- ``log``: fresh weights imitate the won runs of a scripted player that errs (``player.py``), read from its
  chat log by ``imitation.episodes``.
- ``own``: that policy plays training tasks; then it imitates the won of these episodes, token by token.
- ``grpo``: from there some steps of GRPO with the segmentation cost.

Each of the three plays the same held-out tasks once. Success and calls have 95% intervals over seeds and
tasks, and over tasks for each seed, and so have the differences, task by task. The dictionary is fitted to
the successes of each policy, with the skills of ``rules.yaml``.
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
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.program_tools.agent import make_task
from benchmarks.program_tools.model import LONGEST, save_fresh
from benchmarks.program_tools.player import write_log
from skillpress.core.intervals import Z_95, Interval, wilson
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.analysis.mdl_report import ARROW, phrase_table, savings
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.experiment.training import job_in, train
from skillpress.rollouts.collection import requests
from skillpress.skills.fit import fit_as

ROOT = Path(__file__).resolve().parents[2]
MOST_CALLS = 14
ERRS = 0.1
"""The share of the scripted player's steps that are mistakes."""
LOGGED, TRAIN, TEST = 800, 96, 128
"""Runs in the scripted player's log; training and held-out tasks."""
PER_TASK = 4
"""Episodes per training task that the policy plays to learn from."""
STEPS = 10
OVERLAY: dict[str, Any] = {
    "processes": 1,
    "environment": {
        "name": "program",
        "max_calls": MOST_CALLS,
        "run": "benchmarks.program_tools.agent:play",
        "verify": "benchmarks.program_tools.agent:verify",
        "calls": "benchmarks.program_tools.agent:compact",
        "rules": "benchmarks/program_tools/rules.yaml",
        "seconds": 120,
        "isolation": "none",
    },
    "tasks": {"train": TRAIN, "validation": 0, "test": TEST},
    "policy": {"rendering": "requests", "context_tokens": LONGEST},
    "imitation": {
        "demonstrations": 0,
        "batch_size": 64,
        "optimizer": "muon",
        "learning_rate": 0.003,
        "epochs": 4,
    },
    "sampling": {"max_new_tokens": 8, "slots": 64},
    "skills": {"max_phrase_length": 6},
    "training": {
        "steps": STEPS,
        "tasks_per_step": 8,
        "rollouts_per_task": 8,
        "learning_rate": 0.0005,
        "minibatches": 2,
    },
}
POLICIES = {"log": "log", "own": "start", "grpo": "policy"}
"""Each policy and its folder."""


def experiment(seed: int, tasks: Path, model: Path, episodes: Path | None = None) -> Params:
    """The experiment of a seed, from a model folder."""
    own = {
        "seed": seed,
        "environment": {**OVERLAY["environment"], "tasks": str(tasks)},
        "policy": {"model": str(model)},
        "imitation": {"episodes": [] if episodes is None else [str(episodes)]},
    }
    values = merge(merge(read_yaml(ROOT / "params.yaml"), OVERLAY), own)
    return check_params(values, "benchmark")


def imitated(params: Params, folder: Path, output: Path) -> dict[str, Any]:
    """Imitate the experiment's episodes; returns the figures and what became of the episodes."""
    store = ResumeStore(folder, f"imitation-{output.name}")
    found = params.imitation.gather(store.folder)
    assert found is not None
    job = ImitationJob(params, folder / "train.parquet", output=output, store=store, episodes=found)
    result = imitate_demonstrations(job, lambda rank, progress: None)
    store.clear()
    return {"episodes_read": found.read, "episodes_won": found.won, **result.metrics()}


def played(
    params: Params, policy: Path, tasks: Sequence[Task], per_task: int, output: Path
) -> dict[str, Any]:
    """Play tasks and write the episodes."""
    wanted = requests(tasks, per_task, params.seed, output.stem, policy=output.stem)
    store = ResumeStore(output.parent, f"playing-{output.stem}")
    play_episodes(
        CollectionJob(params=params, sampling="training", plays=[Play(policy, wanted)], store=store),
        output,
        lambda count: None,
    )
    store.clear()
    episodes = read_rollouts(output)
    return {
        "episodes": len(episodes),
        "won": sum(each.won for each in episodes),
        "calls": sum(len(each.steps) for each in episodes),
    }


def trained(params: Params, folder: Path) -> dict[str, Any]:
    """Train with GRPO; returns the curve."""
    curve = train(job_in(folder, params, folder))
    return {name: [row[name] for row in curve] for name in ("success", "environment_steps")}


def one_seed(seed: int, folder: Path) -> dict[str, Any]:
    """All policies of a seed, and the files of their held-out episodes. What is in the folder is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    lines, log = folder / "tasks.jsonl", folder / "log.jsonl"
    made = [make_task(number + seed * TRAIN, "train") for number in range(TRAIN)]
    made += [make_task(number, "test") for number in range(TEST)]
    lines.write_text("".join(json.dumps(task) + "\n" for task in made))
    write_log(log, [make_task(n + seed * LOGGED, "shown") for n in range(LOGGED)], ERRS, MOST_CALLS, seed)
    save_fresh(folder / "fresh", seed)
    params = experiment(seed, lines, folder / "fresh", log)
    every = list(params.environment.checked_tasks(SplitSizes(TRAIN, 0, TEST), seed))
    tasks = {split: [task for task in every if task.split == split] for split in ("train", "test")}
    for split, those in tasks.items():
        write_tasks(folder / f"{split}.parquet", those)
    own = experiment(seed, lines, folder / "log", folder / "collected.parquet")
    return {
        "log": kept(folder / "log.json", imitated, params, folder, folder / "log"),
        "collected": kept(
            folder / "collected.json", played, params, folder / "log", tasks["train"], PER_TASK,
            folder / "collected.parquet",
        ),
        "own": kept(folder / "own.json", imitated, own, folder, folder / "start"),
        "grpo": kept(folder / "grpo.json", trained, experiment(seed, lines, folder / "start"), folder),
        "tests": {
            name: kept(
                folder / f"test-{name}.json", played, params, folder / where, tasks["test"], 1,
                folder / f"test-{name}.parquet",
            )
            for name, where in POLICIES.items()
        },
    }  # fmt: skip


def kept(path: Path, work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The figures of some work with its seconds: read if it was done before, otherwise computed now."""
    if not path.exists():
        began, before = time.monotonic(), cpu_seconds()
        found = work(*arguments)
        seconds = {
            "seconds": round(time.monotonic() - began, 1), "cpu_seconds": round(cpu_seconds() - before, 1)
        }  # fmt: skip
        write_json(path, {**found, **seconds})
        print(f"{path}: {read_json(path)}", file=sys.stderr, flush=True)
    done: dict[str, Any] = read_json(path)
    return done


def cpu_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def over_seeds(values: Sequence[Mapping[str, float]], shares: bool) -> dict[str, Any]:
    """The mean over seeds and tasks with its interval; ``values`` has a mapping of tasks for each seed."""
    every = [list(each.values()) for each in values]
    scores = Scores.of(
        [pl.DataFrame({"task_id": list(each), "score": list(each.values())}) for each in values]
    )
    over = over_trainings(scores, shares=shares)
    ends = {} if over is None else {"low": over.low, "high": over.high, "p": over.p}
    return {"mean": scores.mean(), **ends, "seeds": [over_tasks(each, shares) for each in every]}


def over_tasks(values: Sequence[float], shares: bool) -> dict[str, float]:
    """One seed's mean with its interval over tasks: Wilson's for shares."""
    mean = statistics.fmean(values)
    half = Z_95 * statistics.stdev(values) / len(values) ** 0.5
    found = wilson(mean, len(values)) if shares else Interval(mean - half, mean + half)
    return {"mean": mean, "low": found.low, "high": found.high}


def routines(params: Params, episodes: Sequence[Trajectory], tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The dictionary of the successes, its phrases and what it saves."""
    project = params.environment.make_projection()
    corpus = [
        [skill for step in project(tasks[each.task_id], each) for skill in step]
        for each in episodes
        if each.won
    ]
    if not corpus:
        return {"successes": 0}
    dictionary = fit_as(params.skills, corpus, project.alphabet, 0)
    table = phrase_table(dictionary, corpus).filter(pl.col("length") > 1)
    saved = savings(dictionary, corpus)
    return {
        "successes": len(corpus),
        "calls_per_success": sum(len(each.steps) for each in episodes if each.won) / len(corpus),
        "bits_without": saved.singletons,
        "bits_with": saved.dictionary,
        "phrases": table.head(8).to_dicts(),
        "separator": ARROW.strip(),
    }


def report(folder: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """The figures of all seeds."""
    episodes = {
        name: [read_rollouts(folder / f"seed-{seed}" / f"test-{name}.parquet") for seed in seeds]
        for name in POLICIES
    }
    won = {name: [{e.task_id: float(e.won) for e in each} for each in episodes[name]] for name in POLICIES}
    calls = {
        name: [{e.task_id: float(len(e.steps)) for e in each} for each in episodes[name]] for name in POLICIES
    }
    first = folder / f"seed-{seeds[0]}"
    params = experiment(seeds[0], first / "tasks.jsonl", first / "fresh")
    tasks = {task.task_id: task for task in read_tasks(first / "test.parquet")}

    def less(one: str, other: str) -> dict[str, Any]:
        apart = [
            {task: mine[task] - theirs[task] for task in mine}
            for mine, theirs in zip(won[one], won[other], strict=True)
        ]
        return over_seeds(apart, shares=False)

    return {
        "policies": {
            name: {
                "success": over_seeds(won[name], shares=True),
                "calls": over_seeds(calls[name], shares=False),
                "routines": routines(params, [e for each in episodes[name] for e in each], tasks),
            }
            for name in POLICIES
        },
        "differences": {"own - log": less("own", "log"), "grpo - own": less("grpo", "own")},
    }


def main() -> None:
    """Write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--folder", type=Path, help="keeps tasks, policies and episodes")
    parser.add_argument("--result", type=Path, default=ROOT / "benchmarks/results/program_tools.json")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.folder or Path(name)).resolve()
        runs = {seed: one_seed(seed, folder / f"seed-{seed}") for seed in chosen.seeds}
        figures = report(folder, chosen.seeds)
    setting = {
        "seeds": chosen.seeds, "runs_in_the_log": LOGGED, "errs": ERRS, "train_tasks": TRAIN,
        "episodes_per_train_task": PER_TASK, "test_tasks": TEST, "most_calls": MOST_CALLS,
        "grpo_steps": STEPS,
    }  # fmt: skip
    write_json(chosen.result, {**figures, "trainings": runs, "setting": setting, "cores": os.cpu_count()})


if __name__ == "__main__":
    main()
