"""The event-driven collector against the best possible time, and against lock-step in the same run.

    python -m benchmarks.collector [--quick]

64 episodes of 20 steps play at once. A step waits a lognormal time (median 0.2 s, sigma 1.2, cut at 10 s) in
its own thread, as for a sandbox; the same episode waits the same times in every run. The engine answers a
fixed number of requests at once, each after a fixed time, and the others in order. There are two engines: one
that could serve all episodes at once, so that the longest episode is the limit, and one so small that the
engine is the limit. No run can be faster than either bound: ``longest_chain`` is the longest sum of one
episode's waits for environment and engine, ``engine_capacity`` the time in which the engine can answer all
requests. If the engine is the limit, lock-step adds its waits for environments to the same sum, which limits
the gain. ``--quick`` divides all times by ten.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from gymnasium.spaces import Space, Text

from benchmarks.machine import machine
from skillpress.core.engine import Completion, Engine, Promises, Request, Sampling, StateDict
from skillpress.core.interface import AgentState, Info
from skillpress.core.logprobs import as_logprobs
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Task, WeightSpan
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, Window
from skillpress.rollouts.agents.parsing import plain
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests

EPISODES = 64
STEPS = 20
MEDIAN_SECONDS, SIGMA, LONGEST_SECONDS = 0.2, 1.2, 10.0
ENGINES = {"ample": (64, 0.1), "small": (4, 0.2)}
"""Requests served at once, and seconds per request."""


@cache
def waits(task_seed: int, sigma: float = SIGMA) -> tuple[float, ...]:
    """Seconds that each step of an episode waits."""
    drawn = MEDIAN_SECONDS * np.exp(sigma * generator(task_seed, "waits").standard_normal(STEPS))
    return tuple(np.minimum(drawn, LONGEST_SECONDS).tolist())


@dataclass
class Waiting:
    """An environment whose steps wait."""

    scale: float = 1.0
    sigma: float = SIGMA

    def __post_init__(self) -> None:
        self.action_space: Space[str] = Text(max_length=16)
        self.observation_space: Space[str] = self.action_space

    def reset(self, task: Task) -> tuple[str, Info]:
        """The first observation, without a wait."""
        self.waits = list(waits(task.seed, self.sigma))
        return "0", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """The next observation, after its wait."""
        time.sleep(self.waits.pop(0) * self.scale)
        return str(len(self.waits)), False, not self.waits, Info(action=action)


class WithoutWeights:
    """The half of an ``Engine`` that one without weights need not fill."""

    def update_weights(self, weights: StateDict, version: int) -> None:
        """The engine has no weights."""

    def sleep(self) -> None:
        """Does nothing: the engine holds no memory."""

    def wake(self) -> None:
        """Does nothing: the engine needs no memory."""

    def close(self) -> None:
        """Does nothing: no resource is open."""


ANSWER = Completion(
    token_ids=(1,), logprobs=as_logprobs((-1.0,)), finish_reason="stop", weight_spans=(WeightSpan(0, 0, 1),)
)
"""The answer to every request."""


class FakeEngine(WithoutWeights):
    """Serves ``capacity`` requests at once, each for ``seconds``, and the others in order."""

    def __init__(self, capacity: int, seconds: float, lockstep: bool) -> None:
        self.promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=lockstep)
        self._seconds = seconds
        self._free_at = [0.0] * capacity
        self._answers: list[tuple[float, int]] = []

    def submit(self, requests: Sequence[Request]) -> None:
        """Compute when each request will be served."""
        for request in requests:
            ends = max(time.monotonic(), heapq.heappop(self._free_at)) + self._seconds
            heapq.heappush(self._free_at, ends)
            heapq.heappush(self._answers, (ends, request.key))

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """The requests that are served by now."""
        if self._answers:
            time.sleep(max(0.0, min(wait, self._answers[0][0] - time.monotonic())))
        found = []
        while self._answers and self._answers[0][0] <= time.monotonic():
            _, key = heapq.heappop(self._answers)
            found.append((key, ANSWER))
        return found

    def abort(self) -> None:
        """Drop all requests."""
        self._answers.clear()


@dataclass(frozen=True)
class Words:
    """Shows the observation."""

    parser: str = "plain"
    history: int | None = 0

    def prompt(self, state: AgentState) -> str:
        """The observation."""
        return state.observation

    def continuation(self, state: AgentState) -> str:
        """The observation."""
        return state.observation

    def response(self, action: str, info: Info) -> str:
        """The action."""
        return action


def agent_of(engine: Engine) -> LanguageAgent:
    """An agent that shows the engine an observation and takes every answer as the same action."""
    return LanguageAgent(
        prompter=Prompter(
            rendering=Words(), encode=lambda texts: [tuple(text.encode()) for text in texts], budget=100
        ),
        parse=plain,
        state_update=Window(0),
        reward=OutcomeReward(1.0, 0.0),
        decode=lambda ids: "go",
        engine=engine,
        sampling=Sampling(),
    )


def play(capacity: int, seconds: float, scale: float, lockstep: bool) -> dict[str, float]:
    """Wall and processor seconds of all episodes."""
    agent = agent_of(FakeEngine(capacity, seconds * scale, lockstep))
    wanted = requests(tasks(), 1, 0, "benchmark")
    with Collector(ThreadVectorEnv(lambda: Waiting(scale)), agent, EPISODES) as collector:
        started, processor = time.perf_counter(), time.process_time()
        found = collector.collect(wanted)
        spent = {"seconds": time.perf_counter() - started, "processor": time.process_time() - processor}
    assert all(len(trajectory.steps) == STEPS for trajectory in found)
    return spent


def tasks() -> list[Task]:
    """One task per episode; its seed determines its waits."""
    return [
        Task(task_id=f"waits-{number}", environment="waiting", seed=number, spec={})
        for number in range(EPISODES)
    ]


def measure(capacity: int, seconds: float, scale: float) -> dict[str, Any]:
    """One engine: both ways of collecting, and the bounds."""
    bounds = {
        "longest_chain": max(sum(waits(task.seed)) + STEPS * seconds for task in tasks()) * scale,
        "engine_capacity": EPISODES * STEPS * seconds / capacity * scale,
    }
    event_driven = play(capacity, seconds, scale, lockstep=False)
    lock_step = play(capacity, seconds, scale, lockstep=True)
    binding = max(bounds, key=lambda name: bounds[name])
    return {
        "engine": {"at_once": capacity, "seconds_per_request": seconds * scale},
        "bounds": bounds,
        "binding": binding,
        "event_driven": event_driven,
        "lock_step": lock_step,
        "event_driven_over_bound": event_driven["seconds"] / bounds[binding],
        "lock_step_over_event_driven": lock_step["seconds"] / event_driven["seconds"],
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="all times divided by ten")
    scale = 0.1 if parser.parse_args().quick else 1.0
    drawn = np.array([waits(task.seed) for task in tasks()])
    result = {
        "episodes": EPISODES,
        "steps": STEPS,
        "step_seconds": {
            "median": float(np.median(drawn)) * scale,
            "p99": float(np.quantile(drawn, 0.99)) * scale,
            "longest": float(drawn.max()) * scale,
        },
        "engines": {name: measure(*engine, scale) for name, engine in ENGINES.items()},
        "machine": machine(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
