"""The judge's two kinds of sandbox: one runs a program, the other one runs tests, and none runs both.

Limits of time count what the code itself uses. Time in which it waits for a processor is not counted, so a
program does not fail because the machine is busy. A failure by time says so (``timed_out``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from typing import Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from skillpress.environments.code_repair.programs import Check
from skillpress.rollouts.sandbox import Limits, Sandbox, SandboxEndedError, SandboxPool
from skillpress.rollouts.sandbox.tools import Tool

Found = TypeVar("Found")

INSIDE = files("skillpress.environments.code_repair") / "inside"
STATEMENT_SECONDS = 5.0
"""Maximum processor time for the statements of one test, calls of the program not included. They take
milliseconds, unless the program's answer makes them endless."""
TIMED_OUT, GONE = "!time-out", "!a crash"
"""Texts that ``inside/candidate.py`` writes in place of a value. The second one also replaces a missing
answer."""
SLOW_TEST = "the test failed with SlowTestError"
"""The words of ``inside/examiner.py`` for a test whose statements did not end."""
ANSWERS = TypeAdapter(tuple[list[str | None], float])
"""Values of calls (None where there is no call), and processor seconds of the slowest call."""
TEXTS = TypeAdapter(list[str | None])
"""Arguments of calls; None if there is no call."""
OUTCOMES = TypeAdapter(list[tuple[bool, str]])
"""For each test, whether it passed, and why not."""
NO_END = "the tests did not end"
PROGRAM_MB = 256
"""Maximum address space of the program's process."""
LIMITS = Limits(seconds=240.0, memory_mb=512, processes=32, disk_mb=16)
"""Limits of the judge's sandboxes; all calls of a program together end long before."""


class Answering(Protocol):
    """Answers the calls made by tests: a program in its sandbox, or a layer in front of it."""

    @property
    def timed_out(self) -> bool:
        """Whether a call ran out of time."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """The result of each call, as ``inside/values.py`` writes it; None where the call is None."""


class _Kept:
    """A sandbox that is held until it is closed, with some files of ``inside`` loaded."""

    def __init__(self, pool: SandboxPool, tools: Mapping[str, Tool], files: Sequence[str]) -> None:
        self._held = ExitStack()
        self._sandbox = self._held.enter_context(pool.sandbox(tools))
        for file in files:
            _load(self._sandbox, file)

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return self._sandbox.alive

    def close(self) -> None:
        """End it."""
        self._held.close()

    def _execute(self, code: str) -> bool:
        """Run code in the sandbox, and return whether it was stopped for lack of time."""
        return self._sandbox.execute(code).timed_out


class Examiner(_Kept):
    """Runs tests and lints programs, and never runs a program."""

    def __init__(self, pool: SandboxPool) -> None:
        tools = {"call_candidate": self._call, "report": self._take}
        super().__init__(pool, tools, ("values", "examiner", "linter"))
        self._candidate: Answering | None = None
        self._said = ""
        self.timed_out = False
        """Whether a test's own statements, or all tests together, ran out of time in the last ``run``."""

    def run(self, tests: Sequence[Check], candidate: Answering) -> list[tuple[bool, str]]:
        """Return (passed, why not) for each test."""
        listed = [(list(test.names), test.helpers, test.source) for test in tests]
        self._candidate, self.timed_out = candidate, False
        asked = understood(TEXTS, self.ask("first_calls", listed, STATEMENT_SECONDS))
        if asked is None or len(asked) != len(tests):
            return [(False, NO_END)] * len(tests)
        said = self.ask("run_tests", listed, candidate.call_all(asked), STATEMENT_SECONDS)
        found = understood(OUTCOMES, said)
        if found is None or len(found) != len(tests):
            return [(False, NO_END)] * len(tests)
        self.timed_out = any(why == SLOW_TEST for _, why in found)
        return found

    def ask(self, name: str, *arguments: object) -> str:
        """The result of a function of ``inside``, as JSON; empty if it failed."""
        self._said = ""
        if self.alive:
            self.timed_out = self._execute(f"import json\nreport(json.dumps({name}(*{arguments!r})))")
        return self._said

    def _call(self, arguments: str) -> str:
        assert self._candidate is not None, "a test runs against a candidate"
        (answer,) = self._candidate.call_all([arguments])
        return answer or GONE

    def _take(self, said: str) -> None:
        self._said = said


class CandidateSandbox(_Kept):
    """Runs a program, and no test."""

    def __init__(self, pool: SandboxPool) -> None:
        super().__init__(pool, {"answer": self._take}, ("values", "candidate"))
        self._seconds, self._answers = 0.0, ""
        self.timed_out = False
        """Whether a call of this program ran out of time."""
        self.slowest = 0.0
        """Processor seconds of this program's slowest call, as the sandbox reports them. Trust them only if
        no agent wrote the program."""

    def begin(self, entry: str, text: str, seconds: float) -> None:
        """Load this program. Each of its calls may take ``seconds`` of processor time."""
        self._seconds, self.timed_out, self.slowest = seconds, False, 0.0
        self._sandbox.execute(f"import json\nsource, entry = {text!r}, {entry!r}")

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """Return the program's result for each of these arguments, as text; a text that begins with ``!``
        says why there is no value. It is None where the arguments are None."""
        self._answers = ""
        if self.alive and not self.timed_out:
            limits = f"{self._seconds}, {PROGRAM_MB}"
            self.timed_out = self._execute(
                f"answer(json.dumps(run_calls(source, entry, {list(asked)!r}, {limits})))"
            )
        answers, slowest = understood(ANSWERS, self._answers) or ([], 0.0)
        if len(answers) != len(asked):
            answers = [GONE] * len(asked)
        self.slowest = max(self.slowest, slowest)
        self.timed_out = self.timed_out or TIMED_OUT in answers
        return answers

    def _take(self, answers: str) -> None:
        self._answers = answers


def understood(kind: TypeAdapter[Found], said: str) -> Found | None:
    """A sandbox's answer; None if it is not JSON of this type, for example because the program has damaged
    the sandbox."""
    try:
        return kind.validate_json(said, strict=True)
    except ValidationError:
        return None


def _load(sandbox: Sandbox, file: str) -> None:
    """Run a file of ``inside`` in the sandbox, which defines its functions there.

    Raises:
        SandboxEndedError: it failed.
    """
    done = sandbox.execute((INSIDE / f"{file}.py").read_text(encoding="utf-8"))
    if done.error is not None:
        raise SandboxEndedError(f"{file}.py could not be loaded in a sandbox: {done.error}")
