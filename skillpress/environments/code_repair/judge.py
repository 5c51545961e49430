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

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from skillpress.environments.code_repair.programs import Check, Program
from skillpress.sandbox import Limits, Sandbox, SandboxEndedError, SandboxLostError, SandboxPool
from skillpress.sandbox.tools import Tool

INSIDE = Path(__file__).with_name("inside")
MOST_CHARACTERS = 50_000
"""Of a program; a longer one is wrong."""
TEST_SECONDS = 30.0
"""On the clock, for the statements of one test, the calls in it left out where there is one only."""
TIMED_OUT, GONE = "!time-out", "!a crash"
"""As ``inside/candidate.py`` says them; the second one where nothing is said at all."""
PROGRAM_MB = 256
"""Address space of the program's process."""
ATTEMPTS = 3
"""Sandboxes that may be lost, by no fault of the program, before a judgement is given up."""
KEPT = 20_000
"""Verdicts that are remembered."""
CONCURRENT = 4
"""Judgements at the same time: each mostly waits for its turn of a core."""
LIMITS = Limits(seconds=240.0, memory_mb=512, processes=32, disk_mb=16)
"""Of the judge's sandboxes; all calls of a program together end long before."""


@dataclass(frozen=True)
class Verdict:
    """What came of some tests."""

    passed: int
    failures: tuple[str, ...]
    """Of each test that failed, in order: what it says, and why it failed."""
    timed_out: bool
    """Whether a test ran out of time."""

    @property
    def tests(self) -> int:
        """How many there are."""
        return self.passed + len(self.failures)

    @property
    def share(self) -> float:
        """Of the tests, those passed."""
        return self.passed / self.tests

    @property
    def perfect(self) -> bool:
        """Whether all tests passed; none would be no pass."""
        return self.passed > 0 and not self.failures


@dataclass(frozen=True)
class LintReport:
    """What a linter says of a program."""

    syntax: str | None
    """Why it does not parse; None where it does."""
    problems: int


class Answering(Protocol):
    """Answers the calls that tests make: a program in its sandbox, or something in front of it."""

    @property
    def timed_out(self) -> bool:
        """Whether a call ran out of time."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """What each of these calls returns, as ``inside/values.py`` writes it; None for None."""


class Judge:
    """Judges programs for all environments of a process."""

    def __init__(self, test_seconds: float) -> None:
        """``test_seconds``: processor time of one call of the program.

        Raises:
            SandboxUnavailableError: this machine cannot build walls; the message names cause and cure.
        """
        self._test_seconds = test_seconds
        self._pool = SandboxPool(LIMITS, ready=CONCURRENT, max_concurrency=2 * CONCURRENT, wait_seconds=600.0)
        self._turns = threading.Semaphore(CONCURRENT)
        self._examiners: list[_Examiner] = []
        self._shared: list[_Candidate] = []
        """Free sandboxes for texts that are this library's own."""
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[tuple[str, bool, str], Verdict] = OrderedDict()
        self._lints: OrderedDict[str, LintReport] = OrderedDict()

    def verdict(self, program: Program, text: str, hidden: bool, own: bool = False) -> Verdict:
        """Run the hidden tests of a program, or the visible ones, against this text of its file.

        Args:
            own: whether the text is this library's own work, and no agent's.

        Raises:
            SandboxEndedError: no sandbox lasts on this machine.
        """
        key = (program.key, hidden, text)
        with self._lock:
            known = self._verdicts.get(key)
        if known is None:
            known = self._judge(program, text, program.hidden if hidden else program.visible, own)
            with self._lock:
                _keep(self._verdicts, key, known)
        return known

    def rehearse(
        self, program: Program, text: str, tests: Sequence[Check], front: Callable[[Answering], Answering]
    ) -> Verdict:
        """Run tests against this library's own text of a program, with something in front that answers first.

        The verdict is not kept.

        Raises:
            SandboxEndedError: no sandbox lasts on this machine.
        """
        return self._judge(program, text, tests, own=True, front=front)

    def lint(self, text: str) -> LintReport:
        """Read a program without running it; what no linter can read has no syntax."""
        with self._lock:
            known = self._lints.get(text)
        if known is None:
            with self._turns, self._examiner() as examiner:
                known = examiner.lint(text)
            with self._lock:
                _keep(self._lints, text, known)
        return known

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
        if len(text) > MOST_CHARACTERS:
            return Verdict(0, tuple(f"{asked(test)}: the file is too long" for test in tests), False)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._turns, self._examiner() as examiner, self._candidate(own) as candidate:
                    candidate.begin(program.entry, text, self._test_seconds * program.patience)
                    return _run(examiner, front(candidate), tests)
            except SandboxLostError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

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
        with self._lock:
            found = free.pop() if free else None
        found = found or make()
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
        asked = self._do("first_calls", listed, TEST_SECONDS)
        found = asked and self._do("run_tests", listed, candidate.call_all(asked), TEST_SECONDS)
        if not found:
            return [(False, "the tests did not end")] * len(tests)
        return [(passed is True, str(why)) for passed, why in found]

    def lint(self, text: str) -> LintReport:
        """See ``Judge.lint``."""
        if len(text) > MOST_CHARACTERS:
            return LintReport("the file is too long", 0)
        report = self._do("lint", text)
        if report is None:
            return LintReport("it cannot be parsed", 0)
        syntax, problems = report
        return LintReport(syntax, len(problems))

    def _do(self, name: str, *arguments: object) -> Any:
        """What a function of ``inside`` returns; None where it did not end well."""
        self._said = ""
        if self.alive:
            self._sandbox.execute(f"import json\nreport(json.dumps({name}(*{arguments!r})))")
        return json.loads(self._said) if self._said else None

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
        answers = _texts(self._answers, len(asked))
        self.timed_out = self.timed_out or TIMED_OUT in answers
        return answers

    def _take(self, answers: str) -> None:
        self._answers = answers


def _texts(said: str, count: int) -> list[str | None]:
    """So many texts; what is no such list came from a sandbox that its program has spoilt."""
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) != count:
        return [GONE] * count
    return [GONE if answer is not None and not isinstance(answer, str) else answer for answer in found]


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


def _keep(kept: OrderedDict[Any, Any], key: Any, value: object) -> None:
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)
