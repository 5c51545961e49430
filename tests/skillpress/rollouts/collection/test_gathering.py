"""Rounds of an agent that decides in this process: how long they wait for further episodes."""

from __future__ import annotations

import threading
import time

import pytest
from gymnasium.spaces import Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from tests.support.rollouts.walking import TASKS, Countdowner, Walker

FAST, SLOW = (Task(name, "pair", 0, {}) for name in ("fast", "slow"))
STEPS = 4


class Pair:
    """Two episodes of four steps. The first step of the slow one ends when the fast episode has ended."""

    action_space = observation_space = Text(max_length=16)
    over: threading.Event

    def reset(self, task: Task) -> tuple[str, Info]:
        self.name, self.steps = task.task_id, 0
        return task.task_id, Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        self.steps += 1
        if self.name == "slow":
            assert self.over.wait(60), "the fast episode waited for the slow one"
        if ended := self.steps == STEPS:
            self.over.set()
        return str(self.steps), ended, False, Info(action=action)


@pytest.mark.parametrize("gather_seconds", [0.0, 0.05])
def test_a_slow_episode_holds_nobody_up_beyond_the_window(gather_seconds: float) -> None:
    walker = Walker()
    Pair.over = threading.Event()
    with Collector(ThreadVectorEnv(Pair), walker, 2, gather_seconds=gather_seconds) as collector:
        found = collector.collect(requests([FAST, SLOW], 1, 3, "test"))
    assert [len(each.steps) for each in found] == [STEPS, STEPS]
    assert walker.batches.count(1) >= 2 * (STEPS - 1), "after the first round each was asked alone"


def test_a_round_waits_no_longer_than_until_every_open_episode_can_go_on() -> None:
    began, wanted = time.monotonic(), requests(TASKS, 3, 0, "test")
    windowed, waiting = Walker(), Walker()
    with Collector(ThreadVectorEnv(Countdowner), windowed, 4, gather_seconds=3600.0) as collector:
        found = collector.collect(wanted)
    assert time.monotonic() - began < 60
    with Collector(ThreadVectorEnv(Countdowner), waiting, 4) as collector:
        assert collector.collect(wanted) == found
    assert windowed.batches == waiting.batches


def test_trajectories_do_not_depend_on_the_window() -> None:
    wanted = requests(TASKS, 3, 0, "test")
    found = []
    for gather_seconds in (None, 0.0, 0.001):
        with Collector(ThreadVectorEnv(Countdowner), Walker(), 4, gather_seconds=gather_seconds) as collector:
            found.append(collector.collect(wanted))
    assert found[0] == found[1] == found[2]
