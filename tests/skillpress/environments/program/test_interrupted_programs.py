"""Programs whose weights change, whose engine fails, and whose run stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from skillpress.core.engine import Completion
from skillpress.core.trajectory import Task
from skillpress.environments.program.environment import ProgramEnvironment
from skillpress.environments.program.verifier import Verdict
from skillpress.models.engines.checks import EngineError
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.launch import Running
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import Start
from tests.skillpress.environments.program.test_program_environment import POLICY, TASKS, play, section
from tests.support.rollouts import asking

BODY = {"messages": [{"role": "user", "content": "1"}]}


class Updated(LocalEngine):
    """Gets new weights before its second batch, which takes a while."""

    batches = 0

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        self.batches += 1
        if self.batches == 2:
            time.sleep(0.5)
            self.update_weights(dict(self.model.state_dict()), 1)
        return super().completed(wait)


class Failing(LocalEngine):
    """Fails at its second batch."""

    batches = 0

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        self.batches += 1
        if self.batches == 2:
            raise EngineError("out of memory")
        return super().completed(wait)


class Tester:
    """A launcher whose program is the test itself."""

    def start(self, start: Start, ended: Callable[[Ended], None]) -> Running:
        self.url, self.ended = start.url, ended
        return self

    def stop(self) -> None: ...
    def waited(self) -> float:
        return 0.0

    def close(self) -> None: ...

    def ask(self) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/chat/completions", json=BODY, timeout=60)


def test_requests_wait_while_weights_are_updated_and_the_steps_say_which_drew_them() -> None:
    (episode,) = play(
        section("thrice", f"{asking.HERE}:always"), TASKS[:1], rollouts=1, engine=Updated(POLICY)
    )
    assert episode.won
    assert [[span.version for span in step.weight_spans] for step in episode.steps] == [[0], [1], [1]]


def test_after_an_engines_fault_the_run_goes_on_with_the_same_episodes() -> None:
    undisturbed = play(section("thrice"), TASKS[:1])
    with pytest.raises(EngineError, match="out of memory"):
        play(section("thrice"), TASKS[:1], engine=Failing(POLICY))
    assert play(section("thrice"), TASKS[:1]) == undisturbed


def test_an_open_request_is_told_to_ask_again_when_the_run_stops_and_a_late_one_is_gone(
    tmp_path: Path,
) -> None:
    program = Tester()
    with Endpoint() as endpoint, ThreadPoolExecutor(2) as threads:
        environment = ProgramEnvironment(
            section("walk"), endpoint, program, lambda played: Verdict(True), isolated=False, folder=tmp_path
        )
        begun = threads.submit(environment.reset, Task("a", "program", 0, {"id": "a"}))
        while not hasattr(program, "url"):
            time.sleep(0.01)
        first = threads.submit(program.ask)
        begun.result(30)
        environment.close()
        refused = first.result(30)
        assert (refused.status_code, refused.headers["x-should-retry"]) == (503, "true")
        late = program.ask()
        assert (late.status_code, late.headers["x-should-retry"]) == (410, "false")
