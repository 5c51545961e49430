"""VectorEnvironment in worker processes against environments in process: speed, cost per step, memory.

    python -m benchmarks.workers [--params params/alfworld.yaml] [--episodes 1000] [--tasks 64]

A random explorer plays the same training tasks with 1, 8 and 64 episodes at once, in process and in one
worker per core, in turn and three times; the median run counts. The time of its own decisions (a draw from
the admissible actions) is subtracted: ``step_ms`` is the time of the collector's rounds without them, resets
included, per environment step. To show when workers begin to pay, ``waiting`` environments only keep a
processor busy for a given time per step. At the end one collector plays ``--episodes`` episodes, and the
resident memory of the workers is read after 16, a tenth, half and all of them; the increase over the second
half is what episodes leave behind. The figures mean little on a busy machine; the result includes its load.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from gymnasium.spaces import Space, Text

from skillpress.core.interface import Agent, AgentState, Decision, DecisionRequest, Environment, Info
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task
from skillpress.environments.section import SplitSizes
from skillpress.experiment.params import Params, load_params
from skillpress.rollouts.collection import (
    Collector,
    EpisodeRequest,
    SyncVectorEnv,
    VectorEnvironment,
    WorkerVectorEnv,
    requests,
)
from skillpress.rollouts.workers.pool import cores

AT_ONCE = (1, 8, 64)
STEP_COSTS_MS = (0.0, 0.3, 3.0)
WAITING_STEPS = 10
REPETITIONS = 3


class Waiting:
    """Episodes of ``WAITING_STEPS`` steps that each cost ``seconds`` of processor time."""

    action_space: Space[str] = Text(max_length=16)
    observation_space: Space[str] = action_space

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def reset(self, task: Task) -> tuple[str, Info]:
        self.steps = 0
        return "0", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        self.steps += 1
        ends = time.process_time() + self.seconds
        while time.process_time() < ends:
            pass
        return str(self.steps), False, self.steps == WAITING_STEPS, Info(action=action)


class Walker:
    """Makes no decision, in no time."""

    lockstep = True

    def __init__(self) -> None:
        self.asked: list[DecisionRequest] = []

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        self.asked += requests

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        asked, self.asked = self.asked, []
        decision = Decision(
            prompt_ids=(), response_ids=(), logprobs=NO_LOGPROBS, parsed=ParsedAction("", "walk")
        )
        return [(request.key, decision) for request in asked]

    def abort(self) -> None:
        self.asked.clear()

    def close(self) -> None:
        pass

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        return ()

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        return state


@dataclass
class Timed:
    """An agent that records its deciding time; it works in rounds, even if it could do otherwise."""

    agent: Agent
    seconds: float = 0.0
    lockstep: bool = True

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        started = time.perf_counter()
        self.agent.submit(requests)
        self.seconds += time.perf_counter() - started

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        started = time.perf_counter()
        decisions = self.agent.completed(wait)
        self.seconds += time.perf_counter() - started
        return decisions

    def abort(self) -> None:
        self.agent.abort()

    def close(self) -> None:
        self.agent.close()

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        return self.agent.evaluate_step(state, parsed, observation, info)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        return self.agent.update_state(state, decision, observation, info)


def play(
    environments: VectorEnvironment, agent: Agent, wanted: Sequence[EpisodeRequest], slots: int
) -> dict[str, float]:
    """Play and time the episodes. Processes are started and environments made before the clock starts.

    The last episodes warm up, so that a slot with one episode has to load its game like the others.
    """
    timed = Timed(agent)
    collector = Collector(environments, timed, slots)
    collector.collect(wanted[::-1][:slots])
    before, timed.seconds = collector.statistics.environment_steps, 0.0
    started = time.perf_counter()
    collector.collect(wanted)
    seconds = time.perf_counter() - started
    steps = collector.statistics.environment_steps - before
    return {
        "episodes_per_second": len(wanted) / seconds,
        "steps_per_second": steps / seconds,
        "step_ms": 1000 * (seconds - timed.seconds) / steps,
    }


def compare(make: Callable[[], Environment], agent: Agent, tasks: list[Task]) -> dict[str, Any]:
    """For each number of episodes at once, median figures of both kinds of environments, which take turns."""
    kinds: dict[str, VectorEnvironment] = {
        "in_process": SyncVectorEnv(make),
        "workers": WorkerVectorEnv(make),
    }
    table: dict[str, Any] = {}
    episodes = requests(tasks, 1, 0, "benchmark")
    for slots in AT_ONCE:
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for _ in range(REPETITIONS):
            for kind, environments in kinds.items():
                runs[kind].append(play(environments, agent, episodes, slots))
        median = {
            kind: {key: statistics.median(run[key] for run in found) for key in found[0]}
            for kind, found in runs.items()
        }
        speedup = median["workers"]["steps_per_second"] / median["in_process"]["steps_per_second"]
        table[str(slots)] = {**median, "workers_over_in_process": speedup}
    for environments in kinds.values():
        environments.close()
    return table


def memory(make: Callable[[], Environment], agent: Agent, tasks: list[Task], episodes: int) -> dict[str, Any]:
    """Resident bytes of the worker processes, and the increase per episode."""
    environments = WorkerVectorEnv(make)
    collector = Collector(environments, agent, slots=16)
    endless = itertools.cycle(tasks)
    points: dict[int, int] = {}
    for until in (16, episodes // 10, episodes // 2, episodes):
        played = collector.statistics.episodes
        these = [next(endless) for _ in range(until - played)]
        collector.collect(requests(these, 1, 0, "memory", until))
        children = psutil.Process().children()
        points[until] = sum(
            child.memory_info().rss for child in children if "spawn" in " ".join(child.cmdline())
        )
    environments.close()
    half = episodes // 2
    return {
        "resident_mib_after_episodes": {str(n): rss / 2**20 for n, rss in points.items()},
        "kib_per_episode": (points[episodes] - points[half]) / 1024 / (episodes - half),
        "restarts": environments.pool.restarts,
    }


def measure(params: Params, count: int, episodes: int) -> dict[str, Any]:
    """All results for one environment."""
    # Imported here, since workers import this module, and an experiment imports torch.
    from skillpress.experiment.experiment import Experiment

    experiment = Experiment(params)
    sizes = SplitSizes(count, 1, 1)
    made = params.environment.checked_tasks(sizes, params.seed)
    tasks = [task for task in made if task.split == "train"]
    make, agent = params.environment.make, experiment.explorer()
    return {
        "environment": params.environment.name,
        "tasks": len(tasks),
        "at_once": compare(make, agent, tasks),
        "memory": memory(make, agent, tasks, episodes),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", type=Path, action="append", default=[], help="overlay; may be repeated")
    parser.add_argument("--episodes", type=int, default=1000, help="episodes of the memory measurement")
    parser.add_argument("--tasks", type=int, default=64, help="to play")
    parser.add_argument("--skip-waiting", action="store_true", help="measure the environment only")
    chosen = parser.parse_args()
    params = load_params("params.yaml", *chosen.params)
    waiting_tasks = [
        Task(task_id=str(number), environment="waiting", seed=0, spec={}) for number in range(max(AT_ONCE))
    ]
    costs = () if chosen.skip_waiting else STEP_COSTS_MS
    result = {
        **measure(params, chosen.tasks, chosen.episodes),
        "waiting_by_step_cost_ms": {
            str(cost): compare(partial(Waiting, cost / 1000), Walker(), waiting_tasks) for cost in costs
        },
        "machine": {"python": platform.python_version(), "cores": cores(), "load": os.getloadavg()[0]},
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
