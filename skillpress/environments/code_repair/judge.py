"""Whether a program passes tests: the program runs in one sandbox, the tests in another.

The judge takes only the text of one file from an agent. The text goes into a new sandbox, in which each call
is a process of its own that gets arguments and returns a value. The test's statements run in a second
sandbox, in which no agent's code ever runs. There a call of the function under test is a tool of the host,
which passes the arguments and the value between the two. So the program cannot print a pass, end with exit
code 0, patch the test runner, or read the expected values.

Programs have limits of processor time. A program that exceeds one is tried again with more time, as much as
the correct program needs at that moment (``LONGER``, ``SLOWER_THAN_CORRECT``). A busy machine, on which the
same work takes more processor time, therefore does not decide. A verdict by time says so.

The same text always gets the same verdict, so verdicts are cached. A text that an agent wrote gets its own
sandbox. Texts that this library made from the data set's own programs (listed changes) may share one, since
they are not malicious.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from sys import getsizeof
from typing import TypeVar

from pydantic import TypeAdapter

from skillpress.environments.code_repair.judge_sandboxes import (
    LIMITS,
    Answering,
    CandidateSandbox,
    Examiner,
    understood,
)
from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.remembered import Remembered
from skillpress.rollouts.sandbox import SandboxEndedError, SandboxLostError, SandboxPool
from skillpress.rollouts.sandbox.isolation import Kind
from skillpress.rollouts.sandbox.processes import kernel_kills

Found = TypeVar("Found")
Kept = TypeVar("Kept", Examiner, CandidateSandbox)

MOST_CHARACTERS = 50_000
"""Maximum number of characters in a program; a longer one fails."""
LINTED = TypeAdapter(tuple[str | None, list[str]])
"""The linter's result: why a text does not parse (None if it does), and its problems."""
ATTEMPTS = 3
"""Number of sandboxes that may be lost, through no fault of the program, before the judge gives up."""
LONGER = 2.0
"""In its second try a program has this multiple of the first limit. Two threads that share a core take up to
twice as much processor time for the same work."""
SLOWER_THAN_CORRECT = 4.0
"""The second limit is at least this multiple of the correct program's time, which is measured between the two
tries on the same machine."""
CORRECT_MAY_TAKE = 20.0
"""The multiple of the first limit at which the correct program is stopped while it is measured."""
KEPT, KEPT_BYTES = 20_000, 64 << 20
"""Maximum number of cached verdicts and of cached linter reports, and maximum size of each of the two
caches."""
CONCURRENT = 4
"""Number of concurrent judgements; each mostly waits for processor time."""


@dataclass(frozen=True)
class Verdict:
    """The result of some tests."""

    passed: int
    failures: tuple[str, ...]
    """A message for each test that failed, in order: the test, and why it failed."""
    timed_out: bool
    """Whether time ran out in the second try too, so that the verdict depends on a limit of time: of a call,
    of a test's own statements, or of a sandbox."""

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


class Judge:
    """Judges programs for all environments of a process."""

    def __init__(self, test_seconds: float, isolation: Kind = "bubblewrap") -> None:
        """Args:
        test_seconds: maximum processor time of one call of the program in its first try.
        isolation: what isolates its sandboxes."""
        self._test_seconds = test_seconds
        self._pool = SandboxPool(
            LIMITS,
            ready=CONCURRENT,
            max_concurrency=3 * CONCURRENT,  # per judgement: examiner, candidate, and a shared one that waits
            wait_seconds=600.0,
            isolation=isolation,
        )
        self._turns = threading.Semaphore(CONCURRENT)
        self._examiners: list[Examiner] = []
        self._shared: list[CandidateSandbox] = []
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
        def tried(limit: float) -> Verdict:
            with self._tested(program, text, tests, limit, own=own, front=front) as (_, verdict):
                return verdict

        def work() -> Verdict:
            limit = self._test_seconds * program.patience
            with self._turns:
                verdict = tried(limit)
                if verdict.timed_out:
                    correct = self._slowest(program, tests, limit)
                    verdict = tried(max(LONGER * limit, SLOWER_THAN_CORRECT * correct))
                return verdict

        return self._lasting(work, lambda found: found.perfect)

    def _slowest(self, program: Program, tests: Sequence[Check], limit: float) -> float:
        """Processor seconds of the correct program's slowest call, measured now."""
        with self._tested(program, program.correct, tests, CORRECT_MAY_TAKE * limit) as (correct, _):
            return correct.slowest

    @contextmanager
    def _tested(
        self,
        program: Program,
        text: str,
        tests: Sequence[Check],
        limit: float,
        own: bool = True,
        front: Callable[[Answering], Answering] = lambda behind: behind,
    ) -> Iterator[tuple[CandidateSandbox, Verdict]]:
        """The sandbox in which a text was tested, and the verdict; each call has ``limit`` seconds."""
        with (
            self._borrowed(self._examiners, Examiner) as examiner,
            self._borrowed(self._shared if own else None, CandidateSandbox) as candidate,
        ):
            candidate.begin(program.entry, text, limit)
            yield candidate, _run(examiner, front(candidate), tests)

    def _lint(self, text: str) -> LintReport:
        def work() -> LintReport:
            with self._turns, self._borrowed(self._examiners, Examiner) as examiner:
                found = understood(LINTED, examiner.ask("lint", text))
                return NOT_PARSED if found is None else LintReport(found[0], len(found[1]))

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
        """Lend a free object or a new one. Afterwards it is free again, unless it has ended. If ``free`` is
        None, a new one is lent and then closed.
        """
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


def _digest(text: str) -> bytes:
    """A short key for a program's text."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=20).digest()


def _verdict_bytes(key: tuple[str, bool, bytes], verdict: Verdict) -> int:
    return sum(map(getsizeof, verdict.failures))


def _lint_bytes(key: bytes, report: LintReport) -> int:
    return getsizeof(report.syntax)


def _run(examiner: Examiner, candidate: Answering, tests: Sequence[Check]) -> Verdict:
    found = examiner.run(tests, candidate)
    failures = [
        f"{asked(test)}: {why or 'it does not hold'}"
        for test, (passed, why) in zip(tests, found, strict=True)
        if not passed
    ]
    return Verdict(len(tests) - len(failures), tuple(failures), candidate.timed_out or examiner.timed_out)


def asked(test: Check) -> str:
    """A test on one line, cut to the length that can be shown."""
    return " ".join(test.source.split())[:200]
