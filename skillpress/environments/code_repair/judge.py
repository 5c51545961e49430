"""Whether a program passes tests: the program runs in one sandbox, the tests in another.

All that the judge takes from an agent is the text of one file. It goes into a fresh sandbox, where each
call is a process of its own that is given arguments and gives back a value. The test's statements run in a
second sandbox, in which nothing of an agent's ever ran; there a call of the function under test is a tool
of the host, which hands the arguments over and the value back. The program therefore cannot print a pass,
end with exit code 0, patch what runs the tests, or read what is expected.

The same text has the same verdict, so verdicts are kept. A text that an agent wrote gets a sandbox of its
own. What this library made of the data set's own programs (a listed change) may share one, since such a
text plots nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sys import getsizeof
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.code_repair.verdicts import NOT_PARSED, Answering, LintReport, Verdict
from skillpress.environments.remembered import Remembered
from skillpress.play.sandbox import Limits, Sandbox, SandboxEndedError, SandboxLostError, SandboxPool
from skillpress.play.sandbox.processes import kernel_kills
from skillpress.play.sandbox.tools import Tool

Found = TypeVar("Found")

INSIDE = Path(__file__).with_name("inside")
MOST_CHARACTERS = 50_000
"""Of a program; a longer one is wrong."""
TEST_SECONDS = 30.0
"""On the clock, for the statements of one test, the calls in it left out where there is one only."""
TIMED_OUT, GONE = "!time-out", "!a crash"
"""As ``inside/candidate.py`` says them; the second one where nothing is said at all."""
TEXTS = TypeAdapter(list[str | None])
"""Arguments or values of calls; None where there is no call."""
OUTCOMES = TypeAdapter(list[tuple[bool, str]])
"""For each test, whether it passed, and why not."""
LINTED = TypeAdapter(tuple[str | None, list[str]])
"""Why a text does not parse, and what is wrong with it."""
NO_END = "the tests did not end"
PROGRAM_MB = 256
"""Address space of the program's process."""
ATTEMPTS = 3
"""Sandboxes that may be lost, by no fault of the program, before a judgement is given up."""
KEPT, KEPT_BYTES = 20_000, 64 << 20
"""Verdicts that are remembered, and linters' reports, and what each of the two may hold."""
CONCURRENT = 4
"""Judgements at the same time: each mostly waits for its turn of a core."""
LIMITS = Limits(seconds=240.0, memory_mb=512, processes=32, disk_mb=16)
"""Of the judge's sandboxes; all calls of a program together end long before."""


class Judge:
    """Judges programs for all environments of a process."""

    def __init__(self, test_seconds: float) -> None:
        """``test_seconds``: processor time of one call of the program.

        Raises:
            SandboxUnavailableError: this machine cannot build walls; the message names cause and cure.
        """
        self._test_seconds = test_seconds
        self._pool = SandboxPool(
            LIMITS,
            ready=CONCURRENT,
            max_concurrency=3 * CONCURRENT,  # of a turn: examiner, candidate, a shared one that waits
            wait_seconds=600.0,
        )
        self._turns = threading.Semaphore(CONCURRENT)
        self._examiners: list[_Examiner] = []
        self._shared: list[_Candidate] = []
        """Free sandboxes for texts that are this library's own."""
        self._lock = threading.Lock()
        self._verdicts = Remembered[tuple[str, bool, bytes], Verdict](KEPT, KEPT_BYTES, _verdict_bytes)
        self._lints = Remembered[bytes, LintReport](KEPT, KEPT_BYTES, _lint_bytes)

    def verdict(self, program: Program, text: str, hidden: bool, own: bool = False) -> Verdict:
        """Run the hidden tests of a program, or the visible ones, against this text of its file.

        Args:
            own: whether the text is this library's own work, and no agent's.

        Raises:
            SandboxEndedError: no sandbox lasts on this machine.
        """
        tests = program.hidden if hidden else program.visible
        if len(text) > MOST_CHARACTERS:
            return Verdict(0, tuple(f"{asked(test)}: the file is too long" for test in tests), False)

        def judged() -> Verdict:
            return self._lasting(lambda: self._judge(program, text, tests, own), lambda found: found.perfect)

        return self._verdicts.get((program.key, hidden, _digest(text)), judged)

    def rehearse(
        self, program: Program, text: str, tests: Sequence[Check], front: Callable[[Answering], Answering]
    ) -> Verdict:
        """Run tests against this library's own text of a program, with something in front that answers first.

        The verdict is not kept.

        Raises:
            SandboxEndedError: no sandbox lasts on this machine.
        """
        return self._lasting(
            lambda: self._judge(program, text, tests, own=True, front=front), lambda found: found.perfect
        )

    def lint(self, text: str) -> LintReport:
        """Read a program without running it; what no linter can read has no syntax."""
        if len(text) > MOST_CHARACTERS:
            return LintReport("the file is too long", 0)

        def read() -> LintReport:
            return self._lasting(lambda: self._lint(text), lambda found: found != NOT_PARSED)

        return self._lints.get(_digest(text), read)

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
        with self._turns, self._examiner() as examiner, self._candidate(own) as candidate:
            candidate.begin(program.entry, text, self._test_seconds * program.patience)
            return _run(examiner, front(candidate), tests)

    def _lint(self, text: str) -> LintReport:
        with self._turns, self._examiner() as examiner:
            return examiner.lint(text)

    def _lasting(self, work: Callable[[], Found], sure: Callable[[Found], bool]) -> Found:
        """What some work in sandboxes gives, done again where a sandbox was lost. It is done again too where
        the kernel's memory killer was at work, since a program that was killed seems to have crashed.

        Args:
            sure: whether a killed process could not have led to this result.

        Raises:
            SandboxLostError: it went so again and again.
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
    def _examiner(self) -> Iterator[_Examiner]:
        """One that is free, or a new one."""
        with self._borrowed(self._examiners, lambda: _Examiner(self._pool)) as examiner:
            yield examiner

    @contextmanager
    def _candidate(self, own: bool) -> Iterator[_Candidate]:
        """A fresh sandbox for a program, or one that has run only such texts."""
        kept = self._shared if own else []
        with self._borrowed(kept, lambda: _Candidate(self._pool)) as candidate:
            yield candidate
        for unshared in [] if own else kept:
            unshared.close()

    @contextmanager
    def _borrowed(self, free: list[Kept], make: Callable[[], Kept]) -> Iterator[Kept]:
        """One of those that are free, or a new one; it is free again afterwards unless it was ended."""
        found = self._free_one(free) or make()
        try:
            yield found
        except BaseException:
            found.close()
            raise
        if found.alive:
            with self._lock:
                free.append(found)
        else:
            found.close()

    def _free_one(self, free: list[Kept]) -> Kept | None:
        """One of those that are free and live; None where there is none."""
        with self._lock:
            while free:
                found = free.pop()
                if found.alive:
                    return found
                found.close()  # it was killed while it waited
        return None


class _Kept:
    """A sandbox that is held until it is closed, with some files of ``inside``."""

    def __init__(self, pool: SandboxPool, tools: Mapping[str, Tool], files: Sequence[str]) -> None:
        self._held = ExitStack()
        self._sandbox = self._held.enter_context(pool.sandbox(tools))
        for file in files:
            _load(self._sandbox, file)

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        return self._sandbox.alive

    def close(self) -> None:
        """End it."""
        self._held.close()


Kept = TypeVar("Kept", bound=_Kept)


class _Examiner(_Kept):
    """Runs tests and reads programs, and never runs one."""

    def __init__(self, pool: SandboxPool) -> None:
        tools = {"call_candidate": self._call, "report": self._take}
        super().__init__(pool, tools, ("values", "examiner", "linter"))
        self._candidate: Answering | None = None
        self._said = ""

    def run(self, tests: Sequence[Check], candidate: Answering) -> list[tuple[bool, str]]:
        """(passed, why not) of each test."""
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
        """What a function of ``inside`` returns, as JSON; empty where it did not end well."""
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
        """Take this program; a call of it may take so many seconds."""
        self._seconds, self.timed_out = seconds, False
        self._sandbox.execute(f"import json\nsource, entry = {text!r}, {entry!r}")

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """What the program returns for each of these arguments, as text that begins with ``!`` where there is
        no value; None for None."""
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
    """What a sandbox has said; None where it is not JSON of this kind, as where its program has spoilt it."""
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
    """A test in one line, as far as it can be shown."""
    return " ".join(test.source.split())[:200]


def _load(sandbox: Sandbox, file: str) -> None:
    """Define what a file of ``inside`` defines.

    Raises:
        SandboxEndedError: it could not be.
    """
    done = sandbox.execute((INSIDE / f"{file}.py").read_text(encoding="utf-8"))
    if done.error is not None:
        raise SandboxEndedError(f"{file}.py could not be loaded in a sandbox: {done.error}")
