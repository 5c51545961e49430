"""Run the tests of the data set against a program in another sandbox.

Here the function under test is a name whose calls the host carries out in another sandbox. So the expected
values are never in the program's sandbox, and the program never runs where its results are compared.

The first calls of all tests are requested together, since a message costs more than a call. Most tests make
no second call.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.environments.code_repair.inside.values import Node, Values

    def call_candidate(arguments: str) -> str:
        """A tool of the host: it returns the program's result as text."""


SHOWN = 300
"""Maximum number of characters of a value in a report."""
Test = tuple[list[str], str, str]
"""(its names for the function under test, the other code it needs, its statements)."""


class ExaminedError(Exception):
    """The program raised this exception, crashed or did not end."""


class Asked(BaseException):
    """Raised to leave a test at its first call; it carries the arguments."""


class SlowTestError(Exception):
    """A test's own statements do not end, for example when they traverse a list that has become circular."""


def first_calls(tests: Sequence[Test], seconds: float) -> list[str | None]:
    """The arguments of each test's first call; None if it makes none."""
    return [_first_call(test, seconds) for test in tests]


def run_tests(tests: Sequence[Test], answers: Sequence[str | None], seconds: float) -> list[tuple[bool, str]]:
    """Return (passed, why not) for each test.

    Args:
        answers: the answers to the tests' first calls.
        seconds: maximum processor time for the statements of each test.
    """
    return [_run_test(test, answer, seconds) for test, answer in zip(tests, answers, strict=True)]


def _first_call(test: Test, seconds: float) -> str | None:
    values = Values()

    def candidate(*args: Any, **kwargs: Any) -> Any:
        raise Asked(values.write([list(args), kwargs]))

    try:
        _execute(test, candidate, seconds)
    except Asked as asked:
        return str(asked.args[0])
    except Exception:  # noqa: BLE001  it is reported when the test is run
        return None
    return None


def _run_test(test: Test, first: str | None, seconds: float) -> tuple[bool, str]:
    values = Values()
    answers, said = [first] if first is not None else [], []

    def candidate(*args: Any, **kwargs: Any) -> Any:
        arguments = values.write([list(args), kwargs])
        answer = answers.pop() if answers else call_candidate(arguments)
        if answer.startswith("!"):
            raise ExaminedError(answer[1:])
        said.append(values.read(answer))
        return said[-1]

    try:
        _execute(test, candidate, seconds)
    except AssertionError:
        return False, f"it returned {said[-1]!r}"[:SHOWN] if said else ""
    except ExaminedError as error:
        return False, f"it ended with {error}"[:SHOWN]
    except Exception as error:  # noqa: BLE001  a value of the wrong kind may fail in any way
        return False, f"the test failed with {type(error).__name__}"
    return True, ""


def _execute(test: Test, candidate: Callable[..., Any], seconds: float) -> None:
    names, helpers, source = test
    space: dict[str, Any] = {"__name__": "test", "Node": Node}
    random.seed(0)
    signal.signal(signal.SIGPROF, _too_slow)
    # Elapsed time would depend on the machine's other work.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        exec(compile(helpers, "<helpers>", "exec"), space)
        space.update(dict.fromkeys(names, candidate))
        exec(compile(source, "<test>", "exec"), space)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_slow(number: int, frame: object) -> None:
    raise SlowTestError
