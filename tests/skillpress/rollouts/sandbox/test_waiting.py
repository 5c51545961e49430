"""Limits of time count what code does, not how long it waits for a processor of a busy machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skillpress.environments.sandboxed import EpisodeSandbox
from skillpress.rollouts.sandbox import Limits, Sandbox, SandboxLostError
from tests.support.rollouts.busy import busy

COMPUTE = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n'done'"


def test_other_work_of_the_machine_interrupts_no_call() -> None:
    """Beside eight others, code that computes for 0.4 seconds takes more than three."""
    with Sandbox.start(Limits(seconds=1.5)) as sandbox, busy(8):
        began = time.monotonic()
        done = sandbox.execute(COMPUTE.format(0.4))
        elapsed = time.monotonic() - began
    assert elapsed > 1.5, "the machine was not busy enough for this test to say anything"
    assert (done.result, done.error, done.timed_out) == ("'done'", None, False)
    assert sandbox.waited > 0.25 * elapsed


def test_other_work_of_the_machine_uses_up_no_episodes_time() -> None:
    with busy(8):
        episode = EpisodeSandbox(lambda: Sandbox.start(Limits(seconds=5.0)), 1.5)
        assert episode.call(lambda sandbox: sandbox.execute(COMPUTE.format(0.4))).result == "'done'"
        assert 0 < episode.seconds_left < 1.2  # what it waited is measured apart, so the sum is not exact
        episode.renew()


def test_code_that_sleeps_is_interrupted_and_the_call_says_so_on_a_busy_machine_too() -> None:
    with Sandbox.start(Limits(seconds=1.0)) as sandbox, busy(2):
        done = sandbox.execute("import time\ntime.sleep(60)")
    assert done.timed_out and "longer than 1 seconds" in (done.error or "")


def test_code_that_makes_itself_wait_is_interrupted() -> None:
    """The wait that its own processes cause is credited up to a bound."""
    many = (
        "import os\nfor _ in range(24):\n    if os.fork() == 0:\n        while True: pass\nwhile True: pass"
    )
    began = time.monotonic()
    with Sandbox.start(Limits(seconds=0.5, grace_seconds=0.5)) as sandbox:
        assert sandbox.execute(many).timed_out
    assert time.monotonic() - began < 20


def test_the_wait_for_a_sandbox_is_not_the_episodes_time() -> None:
    @contextmanager
    def late() -> Iterator[Sandbox]:
        time.sleep(0.5)
        with Sandbox.start(Limits()) as sandbox:
            yield sandbox

    episode = EpisodeSandbox(late, 0.4)
    assert episode.call(lambda sandbox: sandbox.execute("1 + 1")).result == "2"
    assert episode.seconds_left > 0
    episode.renew()


def test_a_sandbox_that_is_not_to_be_had_uses_up_no_time() -> None:
    @contextmanager
    def none() -> Iterator[Sandbox]:
        time.sleep(0.1)
        raise SandboxLostError("all are in use")
        yield

    episode = EpisodeSandbox(none, 0.05)
    with pytest.raises(SandboxLostError):
        episode.call(lambda sandbox: sandbox.execute("1"))
    assert episode.seconds_left == 0.05
