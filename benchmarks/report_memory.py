"""Peak memory of two playing processes, and of the stages that read their episodes, by number of episodes.

    python -m benchmarks.report_memory [--runs 4 40]

``collection_memory`` measures the parts one by one on short made-up episodes. Here a random explorer really
plays Countdown in the default experiment's setting, in place of all three policies: 100 tasks per run, so 300
episodes a run. Each phase then has its own process:

    play        ``play_episodes`` with ``processes: 2``, as collection and evaluation call it
    evaluate    success rates and paired tests, as the evaluation stage computes them
    report      the report stage itself, without MLflow: tables, figures, examples, the page

A figure is the process's peak resident memory minus its memory when the phase began. ``rank_peak_mib`` is the
larger peak of the two playing processes, minus that of two that play one run of one task.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from benchmarks.collection_memory import peak
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import iterate_rollouts, scan_rollouts
from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task, skill_sequence
from skillpress.evaluation.analysis.mdl_report import write_phrases
from skillpress.evaluation.statistics import compare, evaluate, evaluation_steps
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.params import Params, load_params, merge, read_yaml
from skillpress.pipeline.files import (
    DICTIONARY,
    EVALUATION_ROLLOUTS,
    HISTORY,
    PHRASES,
    POLICIES,
    RESULTS,
    START,
    TRAINED,
    TRAINING_ADVANTAGES,
    TRAINING_ROLLOUTS,
    split_file,
    write_curve,
)
from skillpress.pipeline.stage import Stage
from skillpress.rollouts.collection import Requests, requests
from skillpress.skills.dictionary import save_fitted
from skillpress.skills.fit import fit
from skillpress.skills.history import write_history
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint
from tasks import report

TASKS, STEPS = 100, 7
"""Test tasks; training steps that the run claims to have made."""


class Discarded:
    """A recorder that keeps nothing."""

    def log_summary(self, values: dict[str, float]) -> None:
        """Does nothing."""

    def log_file(self, path: Path) -> None:
        """Does nothing."""


def prepare(runs: int) -> None:
    """The results of the earlier stages, as far as they do not grow with the episodes."""
    overlay = {
        "processes": 2,
        "tasks": {"train": 1, "validation": 1, "test": TASKS},
        "evaluation": {"runs": runs, "votes": 1},
        "training": {"steps": STEPS},
    }
    values = merge(read_yaml(Path(__file__).parents[1] / "params.yaml"), overlay)
    Path("params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    params = load_params()
    made = params.environment.checked_tasks(params.tasks.make(), params.seed)
    write_tasks(split_file("test"), [task for task in made if task.split == "test"])


def job_of(params: Params, tasks: list[Task], runs: int, folder: str) -> CollectionJob:
    """Every task once in each run, by each policy."""
    plays = [
        Play(
            policy=None,
            wanted=sum(
                (
                    requests(tasks, 1, params.seed, policy, f"run-{run}", policy=policy, run=run)
                    for run in range(runs)
                ),
                start=Requests(()),
            ),
            version=STEPS if policy == TRAINED else 0,
        )
        for policy in POLICIES
    ]
    return CollectionJob(
        params=params, sampling="evaluation", plays=plays, store=ResumeStore(Path(folder), "key")
    )


def play() -> dict[str, float]:
    """Play with two processes."""
    params, tasks = load_params(), read_tasks(split_file("test"))
    play_episodes(job_of(params, tasks[:1], 1, "few"), Path("few.parquet"), lambda count: None)
    before = largest_child()
    job = job_of(params, tasks, params.evaluation.runs, "unfinished")
    play_episodes(job, EVALUATION_ROLLOUTS, lambda count: None)
    return {"rank_peak_mib": largest_child() - before}


def largest_child() -> float:
    """The peak of resident memory, in MiB, over this process's ended children."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def evaluated() -> dict[str, float]:
    """Evaluate every policy, and compare each with the previous one."""
    params, tasks = load_params(), read_tasks(split_file("test"))
    runs, longest = params.evaluation.runs, params.environment.max_steps
    every = evaluation_steps(scan_rollouts(EVALUATION_ROLLOUTS))
    steps = {policy: every.filter(pl.col("policy") == policy) for policy in POLICIES}
    summaries = {
        policy: evaluate(played, tasks, runs=runs, votes=1, max_steps=longest).to_json()
        for policy, played in steps.items()
    }
    comparisons = {
        f"{second} against {first}": asdict(
            compare(steps[first], steps[second], max_steps=longest, seed=0, votes=1)
        )
        for first, second in pairwise(POLICIES)
    }
    checkpoint = asdict(SelectedCheckpoint("last", STEPS, None))
    found = {"checkpoint": checkpoint, "policies": summaries, "comparisons": comparisons}
    write_json(RESULTS / "evaluation.json", found)
    return {}


def reported() -> dict[str, float]:
    """Run the report stage."""
    nothing: Any = Discarded()
    report.main(
        Stage(name="report", params=load_params(), run=nothing, store=ResumeStore(Path("unfinished"), "key"))
    )
    return {}


def fit_once() -> dict[str, float]:
    """Make the dictionary of a few successes and the records of a training, which the report also shows."""
    params = load_params()
    projection, tasks = params.environment.make_projection(), read_tasks(split_file("test"))
    by_id = {task.task_id: task for task in tasks}
    wins = (pl.col("policy") == START) & (pl.col("run") == 0) & pl.col("won")
    played = iterate_rollouts(EVALUATION_ROLLOUTS, wins, tokens=False)
    corpus = [skill_sequence(projection, by_id[each.task_id], each) for each in played]
    section = params.skills
    fitted = fit(
        corpus,
        projection.alphabet,
        section.max_phrase_length,
        section.search,
        params.seed,
        section.closure,
    )
    save_fitted(DICTIONARY, fitted)
    write_phrases(PHRASES, fitted, corpus)
    write_history(HISTORY, {STEPS: fitted.learned_counts})
    TrainedEpisodes(TRAINING_ROLLOUTS, TRAINING_ADVANTAGES).join([])
    write_curve(RESULTS / "training.csv", [{"step": float(n), "success": 0.1} for n in range(1, STEPS + 1)])
    return {}


PHASES: dict[str, Callable[[], dict[str, float]]] = {
    "play": play,
    "fit": fit_once,
    "evaluate": evaluated,
    "report": reported,
}
"""Phases in order; ``fit`` makes inputs of the report and is not in the result."""


def measure(phase: str) -> dict[str, float]:
    """Run one phase in this process and folder."""
    before, started = peak(), time.process_time()
    found = PHASES[phase]()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() - started + used.ru_utime + used.ru_stime
    return {"peak_mib": peak() - before, **found, "processor_seconds": seconds}


def measure_all(runs: int) -> dict[str, object]:
    """Every phase in its own process, on the results of the earlier phases."""
    repository = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        prepare(runs)
        os.chdir(repository)
        found: dict[str, object] = {}
        for phase in PHASES:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.report_memory", "--phase", phase],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(repository)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            if phase != "fit":
                found[phase] = json.loads(done.stdout.splitlines()[-1])
        rollouts, page = folder / EVALUATION_ROLLOUTS, folder / RESULTS / "report.html"
        steps = scan_rollouts(rollouts).select(pl.len(), (pl.col("step") == 0).sum().alias("episodes"))
        length, episodes = steps.collect().row(0)
        return {
            "episodes": episodes,
            "steps": length,
            **found,
            "rollouts_file_mib": rollouts.stat().st_size / 2**20,
            "page_mib": page.stat().st_size / 2**20,
        }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[4, 40])
    parser.add_argument("--phase", choices=[*PHASES], help="measure it in this folder")
    chosen = parser.parse_args()
    if chosen.phase:
        print(json.dumps(measure(chosen.phase)))
        return
    result = {
        "runs": {str(runs): measure_all(runs) for runs in chosen.runs},
        "versions": {"polars": pl.__version__, "python": platform.python_version()},
        "machine": {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]},
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
