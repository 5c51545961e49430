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
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.collector import (
    ANSWER,
    EPISODES,
    STEPS,
    Waiting,
    WithoutWeights,
    agent_of,
    tasks,
    waits,
)
from benchmarks.machine import machine
from skillpress.core.engine import Completion, Promises, Request
from skillpress.core.storage import write_json
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests

SIGMAS = {"uneven": 1.2, "even": 0.1}
ENGINES = {"by batch": (0.2, 0.0), "by row": (0.02, 0.01)}
"""Seconds of a batch, and of each of its rows."""
WINDOWS = (None, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Sleeping(WithoutWeights):
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
        return [(key, ANSWER) for key in keys]

    def abort(self) -> None:
        """Forget the requests."""
        self._queued.clear()


def play(sigma: float, engine: tuple[float, float], window: float | None) -> dict[str, float]:
    """Seconds until all episodes have ended, and the mean rows of a batch."""
    sleeping = Sleeping(*engine)
    make = partial(Waiting, sigma=sigma)
    with Collector(ThreadVectorEnv(make), agent_of(sleeping), EPISODES, gather_seconds=window) as collector:
        began = time.perf_counter()
        found = collector.collect(requests(tasks(), 1, 0, "benchmark"))
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
            longest = max(sum(waits(task.seed, sigma)) for task in tasks())
            found[f"{steps}, {engine}"]["longest_episode_seconds"] = longest + STEPS * sum(times)
    result = {
        "episodes": EPISODES,
        "steps": STEPS,
        "found": found,
        "machine": machine(load),
    }
    print(json.dumps(result, indent=2))
    if chosen.output:
        write_json(chosen.output, result)


if __name__ == "__main__":
    main()
