"""Peak memory of a collection that streams to disk, against one that keeps its episodes, in the same run.

    python -m benchmarks.collection_memory [--episodes 1000 100000]

Short synthetic episodes (1 to 5 steps, 60 tokens a step) are played in process, logged to disk and written to
one file in the order asked, as the stages do; the peer keeps all trajectories and writes them at the end.
Each figure is of a process of its own: its peak resident memory beyond what it had when it began to play.
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
from collections.abc import Sequence
from pathlib import Path

from gymnasium.spaces import Text

from skillpress.interface import AgentState, Decision, DecisionRequest, Info, ParsedAction
from skillpress.resume import ResumeStore
from skillpress.rollout import Collector, EpisodeLog, SyncVectorEnv, requests, write_in_order
from skillpress.trajectory import RewardPart, Task, WeightSpan, write_rollouts

TASKS = 1000
SLOTS = 64


class Short:
    """Ends after as many steps as the task says."""

    action_space = observation_space = Text(max_length=64)

    def reset(self, task: Task) -> tuple[str, Info]:
        """At the beginning."""
        self.left = int(task.spec["steps"])
        return f"{self.left} left", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """One fewer."""
        self.left -= 1
        return f"{self.left} left", False, self.left == 0, Info(action=action)


class Talker:
    """Answers 10 tokens to prompts of 50, all different from step to step."""

    lockstep = True

    def __init__(self) -> None:
        self.asked: list[DecisionRequest] = []

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Queue."""
        self.asked += requests

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """All."""
        asked, self.asked = self.asked, []
        return [(request.key, self._decision(request.seed)) for request in asked]

    def _decision(self, seed: int) -> Decision:
        start = 1000 + seed % 100_000
        tokens = tuple(range(start, start + 60))
        parsed = ParsedAction("a thought of some words", "go on")
        return Decision(tokens[:50], tokens[50:], (-0.5,) * 10, parsed, (WeightSpan(0, 0, 10),))

    def abort(self) -> None:
        """Forget."""
        self.asked.clear()

    def close(self) -> None:
        """Nothing to end."""

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """Nothing won."""
        return (RewardPart("success", 0.0, "trajectory"),)

    def update_state(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> AgentState:
        """What is seen."""
        return AgentState(state.task, observation, info)


def peak() -> float:
    """MiB of resident memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def play(kind: str, episodes: int, folder: Path) -> dict[str, float]:
    """What one process takes for a collection."""
    tasks = [Task(f"t{number}", "short", number, {"steps": 1 + number % 5}) for number in range(TASKS)]
    wanted = requests(tasks, episodes // TASKS, 0, "memory")
    before, started = peak(), time.perf_counter()
    with Collector(SyncVectorEnv(Short), Talker(), SLOTS) as collector:
        if kind == "kept":
            write_rollouts(folder / "all.parquet", collector.collect(wanted))
        else:
            store = ResumeStore(folder, "key")
            with EpisodeLog(store) as log:
                log.play(collector, enumerate(wanted))
                log.save()
            write_in_order(folder / "all.parquet", [store], len(wanted), folder / "scratch")
    return {
        "peak_mib": peak() - before,
        "file_mib": (folder / "all.parquet").stat().st_size / 2**20,
        "seconds": time.perf_counter() - started,
    }


def in_a_process(kind: str, episodes: int) -> dict[str, float]:
    """The same, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.collection_memory", "--one", kind, str(episodes), folder]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(found.stdout)
    return measured


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--one", nargs=3, metavar=("KIND", "EPISODES", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        kind, episodes, folder = chosen.one
        print(json.dumps(play(kind, int(episodes), Path(folder))))
        return
    result = {
        **{
            kind: {str(count): in_a_process(kind, count) for count in chosen.episodes}
            for kind in ("streamed", "kept")
        },
        "machine": {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0],
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
