"""Countdown played by a program of 30 lines through the endpoint, against the built-in agent.

    python -m benchmarks.program_countdown --folder FOLDER [--seeds 0 1 2] [--result FILE]

For each seed one imitation start is trained three ways, with GRPO and the default reward (``setting.py``):

    built_in             the language agent in Countdown as it is built in
    program              ``agent.py`` with the ``openai`` client, through the endpoint
    built_in_same_draws  the built-in agent, whose tokens are drawn from the program's seeds

The first two differ by chance alone, and the last two must not differ at all. Then every policy plays each
test task once, the program's as a program and all others as the built-in agent. All draw from the program's
seeds, so equal policies must play the same episodes. One seed's program is trained twice.

The result has success before and after, its difference with two intervals (``docs/evaluation.md``): over
tasks, for these trained policies, and over trainings. It counts the program's episodes that differ in a token
from the built-in agent's, and its calls whose prompt is not the built-in agent's, and has the largest
difference of a token's log-probability from the scorer's. Times are processor seconds of the training process
and of the processes that run the program, without the first step.

The folder keeps starts, trainings and episodes, and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from operator import ne
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import safe_open

from benchmarks.lag import changed
from benchmarks.program_countdown.agent import STEPS
from benchmarks.program_countdown.same import compare_calls
from benchmarks.program_countdown.setting import ARMS, BUILT_IN, PROGRAM, SAME_DRAWS, arm, prepare, tasks_of
from skillpress.core.resume import ResumeStore, content_key
from skillpress.core.rollout_files import read_rollouts, scan_rollouts
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory
from skillpress.evaluation.statistics import EvaluationSteps, compare_trainings, evaluation_steps
from skillpress.experiment.collection import CollectionJob, play_episodes, play_of
from skillpress.experiment.params import Params, load_params
from skillpress.experiment.training import job_in, train
from skillpress.models.policy import load_policy

RESULT = Path(__file__).parents[1] / "results" / "program_countdown.json"
START, AGAIN = "start", "program_again"
SETTING: dict[str, Any] = {
    "processes": 1,
    "environment": {"max_steps": STEPS},
    "tasks": {"validation": 0, "test": 1536},
    "imitation": {"demonstrations": 15_000},
    "training": {"steps": 16, "tasks_per_step": 20},
    "evaluation": {"runs": 1},
}
"""What differs from the default experiment: it is smaller, and an episode has fewer steps."""
PARTS = ("rollout", "update")
"""The parts of a step whose seconds are reported."""


class Processor:
    """Processor seconds of this process and of the processes below it."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []

    def note(self, step: int, metrics: Mapping[str, float]) -> None:
        """Note the seconds so far, at the end of a step."""
        own = psutil.Process()
        below = sum(sum(each.cpu_times()[:2]) for each in own.children(recursive=True))
        self.ends.append((sum(own.cpu_times()[:2]), below))

    def per_step(self) -> dict[str, float] | None:
        """Means over all steps but the first; None if fewer than two were made here."""
        if len(self.ends) < 2:
            return None
        first, last, steps = self.ends[0], self.ends[-1], len(self.ends) - 1
        return {
            "training_process": (last[0] - first[0]) / steps,
            "program_processes": (last[1] - first[1]) / steps,
        }


def weights(folder: Path) -> str:
    """A hash of all weights of a model folder, bit for bit."""
    digest = blake2b(digest_size=16)
    with safe_open(folder / "model.safetensors", "pt") as file:
        for name in sorted(file.keys()):
            digest.update(name.encode() + file.get_tensor(name).contiguous().numpy().tobytes())
    return digest.hexdigest()


def trained(params: Params, folder: Path, name: str) -> dict[str, Any]:
    """The figures of one training, which are kept in its folder."""
    own = folder / name
    if not (own / "figures.json").exists():
        of = PROGRAM if name == AGAIN else name
        tasks, of_arm = tasks_of(folder, of, "train"), arm(params, folder, of)
        key = content_key(of_arm.model_dump(mode="json"), [tasks, folder / START])
        job = replace(job_in(own, of_arm, folder, key=key), tasks=tasks, validation=tasks)
        own.mkdir(exist_ok=True)
        processor = Processor()
        curve = train(job, processor.note)
        episodes = params.training.tasks_per_step * params.training.rollouts_per_task
        figures = {
            "success": [row["success"] for row in curve],
            "calls_per_step": statistics.fmean(row["episode_length"] * episodes for row in curve[1:]),
            "seconds": {
                part: statistics.fmean(row[f"seconds/{part}"] for row in curve[1:]) for part in PARTS
            },
            "processor_seconds": processor.per_step(),
            "largest_mismatch": max(row["mismatch/largest"] for row in curve),
            "weights": weights(job.output),
        }
        write_json(own / "figures.json", figures)
    found: dict[str, Any] = read_json(own / "figures.json")
    return found


def played(params: Params, folder: Path, name: str) -> Path:
    """The file of a policy's episodes of the test tasks."""
    file = folder / f"{name}.parquet"
    if not file.exists():
        player = PROGRAM if name == PROGRAM else SAME_DRAWS
        model = folder / START if name == START else folder / name / "policy"
        plays = [play_of(params, read_tasks(tasks_of(folder, player, "test")), "policy", model)]
        store = ResumeStore(folder / "unfinished", name)
        job = CollectionJob(
            params=arm(params, folder, player), sampling="evaluation", plays=plays, store=store
        )
        play_episodes(job, file, lambda more: None)
        store.clear()
    return file


def compared(params: Params, folder: Path) -> dict[str, float]:
    """The program's episodes and calls, compared with the built-in agent's with the program's draws."""
    program, built_in = (read_rollouts(played(params, folder, name)) for name in (PROGRAM, SAME_DRAWS))
    tasks = read_tasks(tasks_of(folder, SAME_DRAWS, "test"))
    policy = load_policy(folder / PROGRAM / "policy")
    return {
        "episodes": len(program),
        "other_episodes": sum(map(ne, map(spoken, program), map(spoken, built_in))),
        **compare_calls(arm(params, folder, SAME_DRAWS), policy, tasks, program),
    }


def spoken(episode: Trajectory) -> tuple[Any, ...]:
    """What was asked and said in an episode, in tokens, and whether it was won."""
    return episode.won, [(step.prompt_ids, step.response_ids) for step in episode.steps]


def difference(first: Sequence[Path], second: Sequence[Path], params: Params) -> dict[str, Any]:
    """Success of the second policies minus that of the first, by trainings with the same seed."""
    pairs: list[list[EvaluationSteps]] = [
        [evaluation_steps(scan_rollouts(file), seed) for seed, file in enumerate(files)]
        for files in (first, second)
    ]
    found = compare_trainings(*pairs, max_steps=STEPS, seed=params.seed)
    test = found.tests[-1]
    trainings = test.trainings
    return {
        "difference": test.difference,
        "per_seed": test.per_seed,
        "over_tasks": [test.low, test.high],
        "over_trainings": None if trainings is None else [trainings.low, trainings.high],
        "tasks": found.tasks,
    }


def success(files: Sequence[Path]) -> list[float]:
    """The share of each file's episodes that are won."""
    return [statistics.fmean(each.won for each in read_rollouts(file)) for file in files]


def overhead(figures: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """What a training costs as a program, divided by what the same training costs as the built-in agent."""

    def mean(name: str, part: str) -> float:
        return statistics.fmean(each["processor_seconds"][part] for each in figures[name])

    calls = statistics.fmean(each["calls_per_step"] for each in figures[PROGRAM])
    ours, built_in = mean(PROGRAM, "training_process"), mean(SAME_DRAWS, "training_process")
    theirs = mean(PROGRAM, "program_processes")
    return {
        "calls_per_step": calls,
        "processor_seconds_per_step": {BUILT_IN: built_in, PROGRAM: ours, "the_program_itself": theirs},
        "training_process_ratio": ours / built_in,
        "ratio": (ours + theirs) / built_in,
        "endpoint_milliseconds_per_call": 1000 * (ours - built_in) / calls,
        "program_milliseconds_per_call": 1000 * theirs / calls,
        "seconds_per_step": {
            name: {part: statistics.fmean(each["seconds"][part] for each in found) for part in PARTS}
            for name, found in figures.items()
        },
    }


def measure(params: Params, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """All trainings and evaluations."""
    figures: dict[str, list[dict[str, Any]]] = {name: [] for name in ARMS}
    files: dict[str, list[Path]] = {name: [] for name in (START, *ARMS)}
    calls = []
    for seed in seeds:
        of_seed, own = changed(params, seed=seed), folder / f"seed-{seed}"
        prepare(of_seed, own)
        for name in ARMS:
            figures[name].append(trained(of_seed, own, name))
        for name in files:
            files[name].append(played(of_seed, own, name))
        calls.append(compared(of_seed, own))
    again = trained(changed(params, seed=seeds[0]), folder / f"seed-{seeds[0]}", AGAIN)
    same = [
        one["weights"] == other["weights"]
        for one, other in zip(figures[PROGRAM], figures[SAME_DRAWS], strict=True)
    ]
    return {
        "seeds": list(seeds),
        "setting": SETTING,
        "success": {name: success(found) for name, found in files.items()},
        "program_minus_built_in": difference(files[BUILT_IN], files[PROGRAM], params),
        "program_minus_start": difference(files[START], files[PROGRAM], params),
        "built_in_minus_start": difference(files[START], files[BUILT_IN], params),
        "weights_equal_those_with_the_same_draws": same,
        "weights_equal_when_repeated": again["weights"] == figures[PROGRAM][0]["weights"],
        "calls": {key: [each[key] for each in calls] for key in calls[0]},
        "overhead": overhead(figures),
        "training": figures | {AGAIN: [again]},
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Print the measurement as JSON, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="keeps all that is finished")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    params = changed(load_params("params.yaml"), **SETTING)
    result = measure(params, chosen.seeds, chosen.folder.resolve())
    write_json(chosen.result, result)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
