"""Whether a program passes tests: the program runs in one sandbox, the tests in another.

The judge takes only the text of one file from an agent. The text goes into a new sandbox, in which each call
is a process of its own that gets arguments and returns a value. The test's statements run in a second
sandbox, in which no agent's code ever runs. There a call of the function under test is a tool of the host,
which passes the arguments and the value between the two. So the program cannot print a pass, end with exit
code 0, patch the test runner, or read the expected values.

The same text always gets the same verdict, so verdicts are cached. A text that an agent wrote gets its own
sandbox. Texts that this library made from the data set's own programs (listed changes) may share one, since
they are not malicious.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from sys import getsizeof
from typing import Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.remembered import Remembered
from skillpress.play.sandbox import Limits, Sandbox, SandboxEndedError, SandboxLostError, SandboxPool
from skillpress.play.sandbox.processes import kernel_kills
from skillpress.play.sandbox.tools import Tool

Found = TypeVar("Found")

INSIDE = files("skillpress.environments.code_repair") / "inside"
MOST_CHARACTERS = 50_000
"""Maximum number of characters in a program; a longer one fails."""
TEST_SECONDS = 30.0
"""Maximum elapsed time for the statements of one test. If the test makes a single call, the call is not
included."""
TIMED_OUT, GONE = "!time-out", "!a crash"
"""As written by ``inside/candidate.py``. The second one is also used if there is no answer at all."""
TEXTS = TypeAdapter(list[str | None])
"""Arguments or values of calls; None if there is no call."""
OUTCOMES = TypeAdapter(list[tuple[bool, str]])
"""For each test, whether it passed, and why not."""
LINTED = TypeAdapter(tuple[str | None, list[str]])
"""Why a text does not parse, and its problems."""
NO_END = "the tests did not end"
PROGRAM_MB = 256
"""Maximum address space of the program's process."""
ATTEMPTS = 3
"""Number of sandboxes that may be lost, through no fault of the program, before the judge gives up."""
KEPT, KEPT_BYTES = 20_000, 64 << 20
"""Maximum number of cached verdicts and of cached linter reports, and maximum size of each of the two
caches."""
CONCURRENT = 4
"""Number of concurrent judgements; each mostly waits for processor time."""
LIMITS = Limits(seconds=240.0, memory_mb=512, processes=32, disk_mb=16)
"""Limits of the judge's sandboxes; all calls of a program together end long before."""


@dataclass(frozen=True)
class Verdict:
    """The result of some tests."""

    passed: int
    failures: tuple[str, ...]
    """A message for each test that failed, in order: the test, and why it failed."""
    timed_out: bool
    """Whether a test ran out of time."""

    @property
    def tests(self) -> int:
        """Number of tests."""
        return self.passed + len(self.failures)

    @property
    def share(self) -> float:
        """Share of the tests that passed."""
        return self.passed / self.tests

    @property
    def perfect(self) -> bool:
        """Whether all tests passed; False if there are no tests."""
        return self.passed > 0 and not self.failures


@dataclass(frozen=True)
class LintReport:
    """A linter's report on a program."""

    syntax: str | None
    """Why it does not parse; None if it parses."""
    problems: int


NOT_PARSED = LintReport("it cannot be parsed", 0)
"""The report on a text that crashed the linter."""


class Answering(Protocol):
    """Answers the calls made by tests: a program in its sandbox, or a layer in front of it."""

    @property
    def timed_out(self) -> bool:
        """Whether a call ran out of time."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """The result of each of these calls, as ``inside/values.py`` writes it; None for None."""


class Judge:
    """Judges programs for all environments of a process."""

    def __init__(self, test_seconds: float) -> None:
        """``test_seconds``: maximum processor time of one call of the program."""
        self._test_seconds = test_seconds
        self._pool = SandboxPool(
            LIMITS,
            ready=CONCURRENT,
            max_concurrency=3 * CONCURRENT,  # per judgement: examiner, candidate, and a shared one that waits
            wait_seconds=600.0,
        )
        self._turns = threading.Semaphore(CONCURRENT)
        self._examiners: list[_Examiner] = []
        self._shared: list[_Candidate] = []
        """Free sandboxes for texts made by this library."""
        self._lock = threading.Lock()
        self._verdicts = Remembered[tuple[str, bool, bytes], Verdict](KEPT, KEPT_BYTES, _verdict_bytes)
        self._lints = Remembered[bytes, LintReport](KEPT, KEPT_BYTES, _lint_bytes)

    def verdict(self, program: Program, text: str, hidden: bool, own: bool = False) -> Verdict:
        """Run the hidden or the visible tests of a program against this text of its file.

        Args:
            own: whether this library made the text, not an agent.

        Raises:
            SandboxEndedError: sandboxes keep being lost on this machine.
        """
        tests = program.hidden if hidden else program.visible
        if len(text) > MOST_CHARACTERS:
            return Verdict(0, tuple(f"{asked(test)}: the file is too long" for test in tests), False)

        key = (program.key, hidden, _digest(text))
        return self._verdicts.get(key, lambda: self._judge(program, text, tests, own))

    def rehearse(
        self, program: Program, text: str, tests: Sequence[Check], front: Callable[[Answering], Answering]
    ) -> Verdict:
        """Run tests against this library's own text of a program, with a layer in front that may answer calls
        first.

        The verdict is not cached.
        """
        return self._judge(program, text, tests, own=True, front=front)

    def lint(self, text: str) -> LintReport:
        """Check a program without running it. A text that is too long for the linter counts as unparsable."""
        if len(text) > MOST_CHARACTERS:
            return LintReport("the file is too long", 0)

        return self._lints.get(_digest(text), lambda: self._lint(text))

    def close(self) -> None:
        """End all sandboxes."""
        for kept in (*self._examiners, *self._shared):
            kept.close()
        self._examiners.clear()
        self._shared.clear()
        self._pool.close()

    def _judge(
        self,
        program: Program,
        text: str,
        tests: Sequence[Check],
        own: bool,
        front: Callable[[Answering], Answering] = lambda behind: behind,
    ) -> Verdict:
        def work() -> Verdict:
            shared = self._shared if own else None
            with (
                self._turns,
                self._borrowed(self._examiners, _Examiner) as examiner,
                self._borrowed(shared, _Candidate) as candidate,
            ):
                candidate.begin(program.entry, text, self._test_seconds * program.patience)
                return _run(examiner, front(candidate), tests)

        return self._lasting(work, lambda found: found.perfect)

    def _lint(self, text: str) -> LintReport:
        def work() -> LintReport:
            with self._turns, self._borrowed(self._examiners, _Examiner) as examiner:
                return examiner.lint(text)

        return self._lasting(work, lambda found: found != NOT_PARSED)

    def _lasting(self, work: Callable[[], Found], sure: Callable[[Found], bool]) -> Found:
        """Return the result of work in sandboxes; repeat the work if a sandbox was lost. It is also repeated
        if the kernel's memory killer was active meanwhile, since a killed program looks like a crashed one.

        Args:
            sure: whether a killed process could not have led to this result.

        Raises:
            SandboxLostError: all attempts failed in this way.
        """
        for _ in range(ATTEMPTS):
            killed = kernel_kills()
            try:
                found = work()
            except SandboxEndedError as error:
                last = error
            else:
                if sure(found) or kernel_kills() == killed:
                    return found
                last = SandboxLostError("the kernel's memory killer was at work during a judgement")
        raise SandboxLostError(f"no judgement could be finished in {ATTEMPTS} attempts: {last}") from last

    @contextmanager
    def _borrowed(self, free: list[Kept] | None, make: Callable[[SandboxPool], Kept]) -> Iterator[Kept]:
        """Lend a free object or a new one. Afterwards it is free again, unless it has ended.

        None for ``free`` lends a new one, which is closed afterwards."""
        found = (self._free_one(free) if free else None) or make(self._pool)
        kept = False
        try:
            yield found
            kept = free is not None and found.alive
        finally:
            if not kept:
                found.close()
        if free is not None and kept:
            with self._lock:
                free.append(found)

    def _free_one(self, free: list[Kept]) -> Kept | None:
        """A free object that is still alive; None if there is none."""
        with self._lock:
            while free:
                found = free.pop()
                if found.alive:
                    return found
                found.close()  # it was killed while it waited
        return None


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


Kept = TypeVar("Kept", bound=_Kept)


class _Examiner(_Kept):
    """Runs tests and lints programs, and never runs a program."""

    def __init__(self, pool: SandboxPool) -> None:
        tools = {"call_candidate": self._call, "report": self._take}
        super().__init__(pool, tools, ("values", "examiner", "linter"))
        self._candidate: Answering | None = None
        self._said = ""

    def run(self, tests: Sequence[Check], candidate: Answering) -> list[tuple[bool, str]]:
        """Return (passed, why not) for each test."""
        listed = [(list(test.names), test.helpers, test.source) for test in tests]
        self._candidate = candidate
        asked = _understood(TEXTS, self._do("first_calls", listed, TEST_SECONDS))
        if asked is None or len(asked) != len(tests):
            return [(False, NO_END)] * len(tests)
        said = self._do("run_tests", listed, candidate.call_all(asked), TEST_SECONDS)
        found = _understood(OUTCOMES, said)
        if found is None or len(found) != len(tests):
            return [(False, NO_END)] * len(tests)
        return found

    def lint(self, text: str) -> LintReport:
        """See ``Judge.lint``."""
        found = _understood(LINTED, self._do("lint", text))
        return NOT_PARSED if found is None else LintReport(found[0], len(found[1]))

    def _do(self, name: str, *arguments: object) -> str:
        """The result of a function of ``inside``, as JSON; empty if it failed."""
        self._said = ""
        if self.alive:
            self._sandbox.execute(f"import json\nreport(json.dumps({name}(*{arguments!r})))")
        return self._said

    def _call(self, arguments: str) -> str:
        assert self._candidate is not None, "a test runs against a candidate"
        (answer,) = self._candidate.call_all([arguments])
        return answer or GONE

    def _take(self, said: str) -> None:
        self._said = said


class _Candidate(_Kept):
    """Runs a program, and no test."""

    def __init__(self, pool: SandboxPool) -> None:
        super().__init__(pool, {"answer": self._take}, ("values", "candidate"))
        self._seconds, self._answers = 0.0, ""
        self.timed_out = False
        """Whether a call of this program ran out of time."""

    def begin(self, entry: str, text: str, seconds: float) -> None:
        """Load this program. Each of its calls may take ``seconds``."""
        self._seconds, self.timed_out = seconds, False
        self._sandbox.execute(f"import json\nsource, entry = {text!r}, {entry!r}")

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """Return the program's result for each of these arguments, as text; a text that begins with ``!``
        says why there is no value. None for None."""
        self._answers = ""
        if self.alive and not self.timed_out:
            limits = f"{self._seconds}, {PROGRAM_MB}"
            self._sandbox.execute(f"answer(json.dumps(run_calls(source, entry, {list(asked)!r}, {limits})))")
        answers = _understood(TEXTS, self._answers)
        if answers is None or len(answers) != len(asked):
            answers = [GONE] * len(asked)
        self.timed_out = self.timed_out or TIMED_OUT in answers
        return answers

    def _take(self, answers: str) -> None:
        self._answers = answers


def _understood(kind: TypeAdapter[Found], said: str) -> Found | None:
    """A sandbox's answer; None if it is not JSON of this type, for example because the program has damaged
    the sandbox."""
    try:
        return kind.validate_json(said, strict=True)
    except ValidationError:
        return None


def _digest(text: str) -> bytes:
    """A short key for a program's text."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=20).digest()


def _verdict_bytes(key: tuple[str, bool, bytes], verdict: Verdict) -> int:
    return sum(map(getsizeof, verdict.failures))


def _lint_bytes(key: bytes, report: LintReport) -> int:
    return getsizeof(report.syntax)


def _run(examiner: _Examiner, candidate: Answering, tests: Sequence[Check]) -> Verdict:
    found = examiner.run(tests, candidate)
    failures = [
        f"{asked(test)}: {why or 'it does not hold'}"
        for test, (passed, why) in zip(tests, found, strict=True)
        if not passed
    ]
    return Verdict(len(tests) - len(failures), tuple(failures), candidate.timed_out)


def asked(test: Check) -> str:
    """A test on one line, cut to the length that can be shown."""
    return " ".join(test.source.split())[:200]


def _load(sandbox: Sandbox, file: str) -> None:
    """Run a file of ``inside`` in the sandbox, which defines its functions there.

    Raises:
        SandboxEndedError: it failed.
    """
    done = sandbox.execute((INSIDE / f"{file}.py").read_text(encoding="utf-8"))
    if done.error is not None:
        raise SandboxEndedError(f"{file}.py could not be loaded in a sandbox: {done.error}")
