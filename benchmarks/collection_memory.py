"""Peak memory of stages with many episodes, by their number. It must not grow with the number.

    python -m benchmarks.collection_memory [--episodes 1000 10000 100000]

Short synthetic episodes (1 to 5 steps, 60 tokens a step; every task once in each run) take the same path as
those of the default experiment, with each phase in its own process:

    collect     play them in process, log them to disk, write them to one file in order
    project     their skills, with the stage's own function and Countdown's projection
    corpus      the successes' skills, which fitting a dictionary holds in memory
    evaluate    success rates, and Countdown's behaviour figures

A figure is the process's peak resident memory minus its memory when the phase began.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from gymnasium.spaces import Space, Text

from benchmarks.device import status_bytes
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.logprobs import as_logprobs
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.sequence_files import write_sequences
from skillpress.core.trajectory import RewardPart, Task, WeightSpan
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.evaluation.analysis.fitted import read_corpus
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.statistics import evaluate, evaluation_steps
from skillpress.experiment.start_rollouts import projected
from skillpress.pipeline.files import BASE_ROLLOUTS, SEQUENCES
from skillpress.rollouts.collection import (
    Collector,
    EpisodeLog,
    Requests,
    SyncVectorEnv,
    requests,
    write_in_order,
)

LONGEST, SLOTS = 5, 64
TASKS = [
    Task(task_id=f"t{n}", environment="short", seed=n, spec={"steps": 1 + n % LONGEST, "target": 24})
    for n in range(1000)
]


class Short:
    """Ends after the number of steps in the task; every other task's end is a win."""

    action_space: Space[str] = Text(max_length=64)
    observation_space: Space[str] = action_space

    def reset(self, task: Task) -> tuple[str, Info]:
        """The first observation."""
        self.left, self.winnable = int(task.spec["steps"]), task.seed % 2 == 0
        return f"{self.left} left", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """One step fewer to go."""
        self.left -= 1
        won = self.left == 0 and self.winnable
        return f"{self.left} left", won, self.left == 0 and not won, Info(action=action, won=won)


class Talker:
    """Answers 10 tokens to prompts of 50. All tokens differ from step to step."""

    lockstep = True

    def __init__(self) -> None:
        self.asked: list[DecisionRequest] = []

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Queue the requests."""
        self.asked += requests

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """All queued decisions."""
        asked, self.asked = self.asked, []
        return [(request.key, self._decision(request.seed)) for request in asked]

    def _decision(self, seed: int) -> Decision:
        start = 1000 + seed % 100_000
        tokens = tuple(range(start, start + 60))
        parsed = ParsedAction("a thought of some words", f"op(+, {seed % 30}, 4)")
        return Decision(
            prompt_ids=tokens[:50],
            response_ids=tokens[50:],
            logprobs=as_logprobs((-0.5,) * 10),
            parsed=parsed,
            weight_spans=(WeightSpan(0, 0, 10),),
        )

    def abort(self) -> None:
        """Drop the queue."""
        self.asked.clear()

    def close(self) -> None:
        """Nothing to end."""

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """No step is won."""
        return (RewardPart("success", 0.0, "trajectory"),)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """The state with the last observation."""
        return AgentState(task=state.task, observation=observation, info=info)


def wanted(episodes: int) -> Requests:
    """Every task once in each run."""
    runs = [requests(TASKS, 1, 0, "memory", f"run-{n}", run=n) for n in range(episodes // len(TASKS))]
    return sum(runs, start=Requests(()))


def collect(episodes: int) -> None:
    """Play, log, and write in order."""
    asked, store = wanted(episodes), ResumeStore(Path("unfinished"), "key")
    with Collector(SyncVectorEnv(Short), Talker(), SLOTS) as collector, EpisodeLog(store) as log:
        log.play(collector, enumerate(asked))
        log.save()
    write_in_order(BASE_ROLLOUTS, [store], len(asked), Path("scratch"))


def project(episodes: int) -> None:
    """The skills of every episode."""
    write_sequences(SEQUENCES, projected(CountdownProjection(), TASKS, BASE_ROLLOUTS, lambda count: None))


def corpus(episodes: int) -> None:
    """The corpus that a dictionary is fitted to."""
    read = read_corpus(SEQUENCES)
    assert len(read) == episodes // 2


def evaluation(episodes: int) -> None:
    """Success rates and behaviour."""
    steps = evaluation_steps(scan_rollouts(BASE_ROLLOUTS))
    summary = evaluate(steps, TASKS, runs=episodes // len(TASKS), votes=1, max_steps=LONGEST)
    assert summary.pass_at_1.mean == 0.5
    environment_figures("countdown").behavior(steps)


PHASES: dict[str, Callable[[int], None]] = {
    "collect": collect,
    "project": project,
    "corpus": corpus,
    "evaluate": evaluation,
}


def measure(phase: str, episodes: int) -> dict[str, float]:
    """Run one phase in this process and folder."""
    before, started = peak(), time.process_time()
    PHASES[phase](episodes)
    return {"peak_mib": peak() - before, "processor_seconds": time.process_time() - started}


def peak() -> float:
    """The peak of this process's resident memory in MiB. (``ru_maxrss`` never falls below the memory of the
    process that started it.)"""
    return status_bytes("VmHWM") / 2**20


def measure_all(episodes: int) -> dict[str, object]:
    """Every phase in its own process, on the results of the earlier phases."""
    repository = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, object] = {}
        for phase in PHASES:
            command = [sys.executable, "-m", "benchmarks.collection_memory", "--phase", phase]
            done = subprocess.run(
                [*command, "--episodes", str(episodes)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(repository)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found[phase] = json.loads(done.stdout)
        rollouts = Path(folder) / BASE_ROLLOUTS
        return {
            **found,
            "steps": scan_rollouts(rollouts).select(pl.len()).collect().item(),
            "rollouts_file_mib": rollouts.stat().st_size / 2**20,
        }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--phase", choices=[*PHASES], help="measure it in this folder")
    chosen = parser.parse_args()
    if chosen.phase:
        print(json.dumps(measure(chosen.phase, chosen.episodes[0])))
        return
    result = {
        "episodes": {str(count): measure_all(count) for count in chosen.episodes},
        "versions": {"polars": pl.__version__, "python": platform.python_version()},
        "machine": {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]},
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
