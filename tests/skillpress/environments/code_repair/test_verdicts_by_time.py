"""No verdict depends on how busy or how slow the machine is, and a verdict by time says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from skillpress.environments.code_repair.environment import LIMITS, RepairEpisode
from skillpress.environments.code_repair.judge import CORRECT_MAY_TAKE, LONGER, SLOWER_THAN_CORRECT, Judge
from skillpress.environments.code_repair.programs import Program
from skillpress.environments.sandboxed import EpisodeSandbox
from skillpress.rollouts.sandbox import Sandbox
from tests.support.rollouts.busy import busy

ENDLESS = "def largest(numbers):\n    while True: pass\n"


def taking(seconds: float, does: str = "pass") -> str:
    """A right program whose calls take this much processor time on every machine."""
    return f"""\
import time
def largest(numbers):
    while time.process_time() < {seconds}: {does}
    return max(numbers)
"""


@pytest.fixture(scope="module")
def strict() -> Iterator[Judge]:
    """A judge with a tenth of a second for each call."""
    judge = Judge(test_seconds=0.1)
    yield judge
    judge.close()


def test_a_program_as_slow_as_the_correct_one_passes_whatever_the_limit(
    strict: Judge, program: Program
) -> None:
    """If the correct program exceeds the limit on this machine, an equal program still passes."""
    slow = replace(program, name="slow", correct=taking(0.4), hidden=program.hidden[:2])
    verdict = strict.verdict(slow, taking(0.4) + "# an agent's", hidden=True)
    assert verdict.perfect and not verdict.timed_out
    assert SLOWER_THAN_CORRECT * 0.4 > 0.4 and CORRECT_MAY_TAKE * 0.1 > 0.4


def test_a_program_that_ends_near_the_limit_is_tried_again_before_it_has_failed(
    strict: Judge, program: Program
) -> None:
    one = replace(program, name="near", hidden=program.hidden[:1])
    assert strict.verdict(one, taking(0.15), hidden=True).perfect and LONGER * 0.1 > 0.15
    far = strict.verdict(one, taking(0.5), hidden=True)
    assert not far.perfect and far.timed_out


def test_other_work_of_the_machine_fails_no_program(strict: Judge, program: Program) -> None:
    """Beside eight others a call that computes for 0.08 seconds has to wait for more than half a second."""
    one = replace(program, name="beside", hidden=program.hidden[:1])
    with busy(8):
        verdict = strict.verdict(one, taking(0.08), hidden=True)
    assert verdict.perfect and not verdict.timed_out


def test_a_call_that_sleeps_is_stopped(strict: Judge, program: Program) -> None:
    verdict = strict.verdict(program, taking(60, "time.sleep(1)"), hidden=True)
    assert verdict.timed_out and verdict.passed == 0


def test_a_threads_time_counts_and_its_waiting_does_not(strict: Judge, program: Program) -> None:
    """A thread that computes keeps its program awake, also while the first thread sleeps."""
    text = """\
import threading
def largest(numbers):
    thread = threading.Thread(target=endless)
    thread.start()
    thread.join()
def endless():
    while True: pass
"""
    assert strict.verdict(program, text, hidden=True).timed_out


def test_a_failure_that_is_not_by_time_says_nothing_of_time(strict: Judge, program: Program) -> None:
    assert not strict.verdict(program, program.faulty, hidden=True).timed_out
    assert not strict.verdict(program, "import os\nos._exit(0)\n", hidden=True).timed_out


def test_statements_of_a_test_that_do_not_end_are_a_verdict_by_time(
    strict: Judge, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skillpress.environments.code_repair import judge_sandboxes

    monkeypatch.setattr(judge_sandboxes, "STATEMENT_SECONDS", 0.2)
    source = "while True:\n    if largest([1, 2]) is not None: pass\n    while True: pass"
    endless = replace(program, name="endless", hidden=(replace(program.hidden[0], source=source),))
    verdict = strict.verdict(endless, program.correct, hidden=True)
    assert verdict.timed_out and verdict.failures[0].endswith("the test failed with SlowTestError")


@pytest.mark.parametrize(("text", "lost"), [(ENDLESS, "out_of_time"), ("", "failing")])
def test_the_record_of_an_episode_says_which_verdict_was_by_time(
    text: str, lost: str, strict: Judge, program: Program
) -> None:
    sandbox = EpisodeSandbox(lambda: Sandbox.start(LIMITS), 60.0)
    episode = RepairEpisode(program, strict, sandbox, max_steps=12, measure_edits=False)
    episode.start()
    whole = {"tool": "edit", "command": "str_replace", "path": "largest.py"}
    episode.act(json.dumps({**whole, "old_str": program.faulty, "new_str": text}))
    info = episode.act(json.dumps({"tool": "submit"}))[3]
    sandbox.renew()
    assert (info.won, info.lost) == (False, lost)
