"""A second try for tests marked ``kills``, which kill processes and wait for others on a busy machine.

No other test has a second try. The end of a run names the tests that needed a second try, whether they passed
it or not.
"""

from __future__ import annotations

from typing import Any

import pytest
from _pytest.runner import runtestprotocol

SECOND_TRY = "second try"
"""Property of the reports of a repeated test; its value says what failed first."""
DEADLINE = pytest.StashKey[Any]()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Stores a test's deadline, which the second try has again."""
    item.stash[DEADLINE] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if item.get_closest_marker("kills") is None:
        return None
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = next((report for report in reports if report.failed), None)
    if failed is not None:
        # The module's fixtures may have failed. The session is a node, but no item, and its fixtures stay.
        item.session._setupstate.teardown_exact(item.session)  # type: ignore[arg-type]
        if DEADLINE in item.stash:
            hook.pytest_timeout_cancel_timer(item=item)
            hook.pytest_timeout_set_timer(item=item, settings=item.stash[DEADLINE])
        item._initrequest()  # type: ignore[attr-defined]  # fixtures are made again
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            report.user_properties.append((SECOND_TRY, f"{failed.when}: {failed.longreprtext}"))
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tried = {
        report.nodeid: (report, first)
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.getreports(outcome)
        for name, first in getattr(report, "user_properties", ())  # a collection's error has none
        if name == SECOND_TRY and (report.when == "call" or not report.passed)
    }
    if tried:
        terminalreporter.section("needed a second try")
    for name, (report, first) in tried.items():
        terminalreporter.line(f"{name}: {report.outcome} then; first it failed in {first}")
