"""How long a batch of an engine in this process should wait for further episodes (``gather_seconds``).

    python -m benchmarks.gathering [--output benchmarks/results/gathering.json]

64 episodes of 20 steps play at once. A step waits a lognormal time in its own thread, like a program's tool:
median 0.2 s, and sigma 1.2 (*uneven*, cut at 10 s) or 0.1 (*even*). The engine sleeps instead of computing,
so a busy machine changes little: a fixed time for a batch (*by batch*, like a GPU with few rows) or a time
for each row (*by row*, like a processor). ``all`` waits for every open episode, as without a value. Each
figure is the seconds until all episodes have ended, with the mean rows of a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Text

from benchmarks.collector import Words
from skillpress.core.engine import Completion, Promises, Request, Sampling, StateDict
from skillpress.core.interface import Info
from skillpress.core.seeds import generator
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Task, WeightSpan
from skillpress.play.agents import LanguageAgent, OutcomeReward, Prompter, Window
from skillpress.play.agents.parsing import plain
from skillpress.play.rollout import Collector, ThreadVectorEnv, requests

EPISODES, STEPS = 64, 20
MEDIAN_SECONDS, LONGEST_SECONDS = 0.2, 10.0
SIGMAS = {"uneven": 1.2, "even": 0.1}
ENGINES = {"by batch": (0.2, 0.0), "by row": (0.02, 0.01)}
"""Seconds of a batch, and of each of its rows."""
WINDOWS = (None, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@cache
def waits(sigma: float, seed: int) -> tuple[float, ...]:
    """Seconds that each step of an episode waits."""
    drawn = MEDIAN_SECONDS * np.exp(sigma * generator(seed, "waits").standard_normal(STEPS))
    return tuple(np.minimum(drawn, LONGEST_SECONDS).tolist())


@dataclass
class Waiting:
    """An environment whose steps wait."""

    sigma: float
    action_space = observation_space = Text(max_length=16)

    def reset(self, task: Task) -> tuple[str, Info]:
        """The first observation, without a wait."""
        self.waits = list(waits(self.sigma, task.seed))
        return "0", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """The next observation, after its wait."""
        time.sleep(self.waits.pop(0))
        return str(len(self.waits)), False, not self.waits, Info(action=action)


class Sleeping:
    """A lockstep engine whose batches take a known time."""

    promises = Promises(exact_seeds=True, exact_logprobs=True, lockstep=True)

    def __init__(self, batch: float, row: float) -> None:
        self._batch, self._row = batch, row
        self._queued: list[int] = []
        self.rows: list[int] = []

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue the requests."""
        self._queued += [request.key for request in requests]

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """Answer all, after the time that the batch takes."""
        keys, self._queued = self._queued, []
        self.rows.append(len(keys))
        time.sleep(self._batch + self._row * len(keys))
        answer = Completion(
            token_ids=(1,), logprobs=(-1.0,), finish_reason="stop", weight_spans=(WeightSpan(0, 0, 1),)
        )
        return [(key, answer) for key in keys]

    def abort(self) -> None:
        """Forget the requests."""
        self._queued.clear()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """There are no weights."""

    def sleep(self) -> None:
        """Nothing is held."""

    def wake(self) -> None:
        """Nothing is needed."""

    def close(self) -> None:
        """Nothing is open."""


def play(sigma: float, engine: tuple[float, float], window: float | None) -> dict[str, float]:
    """Seconds until all episodes have ended, and the mean rows of a batch."""
    sleeping = Sleeping(*engine)
    agent = LanguageAgent(
        prompter=Prompter(rendering=Words(), encode=lambda texts: [(1,) for _ in texts], budget=100),
        parse=plain,
        state_update=Window(0),
        reward=OutcomeReward(1.0, 0.0),
        decode=lambda ids: "go",
        engine=sleeping,
        sampling=Sampling(),
    )
    tasks = [Task(f"waits-{number}", "waiting", seed=number, spec={}) for number in range(EPISODES)]
    make = partial(Waiting, sigma)
    with Collector(ThreadVectorEnv(make), agent, EPISODES, gather_seconds=window) as collector:
        began = time.perf_counter()
        found = collector.collect(requests(tasks, 1, 0, "benchmark"))
        seconds = time.perf_counter() - began
    assert all(len(trajectory.steps) == STEPS for trajectory in found)
    return {"seconds": seconds, "rows": float(np.mean(sleeping.rows))}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    found: dict[str, Any] = {}
    for steps, sigma in SIGMAS.items():
        for engine, times in ENGINES.items():
            found[f"{steps}, {engine}"] = {
                "all" if window is None else f"{window:g}": play(sigma, times, window) for window in WINDOWS
            }
            longest = max(sum(waits(sigma, number)) for number in range(EPISODES))
            found[f"{steps}, {engine}"]["longest_episode_seconds"] = longest + STEPS * sum(times)
    result = {
        "episodes": EPISODES,
        "steps": STEPS,
        "found": found,
        "machine": {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "load": [load, os.getloadavg()[0]],
        },
    }
    print(json.dumps(result, indent=2))
    if chosen.output:
        write_json(chosen.output, result)


if __name__ == "__main__":
    main()
