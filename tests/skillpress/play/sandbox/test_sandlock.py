"""sandlock's walls: used only if asked for, and refused if the kernel is too old."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.play.sandbox import Limits, Sandbox, SandboxPool, SandboxUnavailableError, sandlock
from skillpress.play.sandbox.sandlock import landlock_version, refusal
from tests.support.play.ordinary_user import said_by_nobody

ROOT = Path(__file__).parents[4]


@pytest.fixture
def possible() -> None:
    """Skip if this machine does not support them."""
    if reason := refusal(platform.release(), landlock_version()):
        pytest.skip(reason)
    pytest.importorskip("sandlock")


@pytest.mark.parametrize(
    ("release", "version", "words"),
    [
        ("6.6.87-generic", 6, "needs Linux 6.7 or later; this is 6.6.87-generic"),
        ("5.15.0", 1, "needs Linux 6.7"),
        ("6.8.0-31-generic", 4, "version 6 or later, and this kernel (6.8.0-31-generic) has version 4"),
        ("6.18.44", 0, "has none"),
    ],
)  # fmt: skip
def test_kernel_that_is_too_old_is_refused(release: str, version: int, words: str) -> None:
    assert words in refusal(release, version)


@pytest.mark.parametrize(("release", "version"), [("6.12.0", 6), ("7.0.1-rc1", 8), ("6.18.44-fc-v657", 7)])
def test_kernel_that_is_new_enough_is_not(release: str, version: int) -> None:
    assert refusal(release, version) == ""


def test_refusal_comes_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandlock, "landlock_version", lambda: 0)
    for start in (Sandbox.start, SandboxPool):
        with pytest.raises(SandboxUnavailableError, match="sandlock needs"):
            start(backend="sandlock")  # type: ignore[operator]


def test_backend_that_is_unknown_is_refused_with_those_there_are() -> None:
    for start in (Sandbox.start, SandboxPool):
        with pytest.raises(UserError, match="'docker': there are bubblewrap, jupyter, sandlock"):
            start(backend="docker")  # type: ignore[operator]


def test_bubblewrap_is_what_is_taken_unless_another_is_named() -> None:
    with Sandbox.start() as sandbox:
        assert sandbox.backend == "bubblewrap"


@pytest.mark.usefixtures("possible")
def test_it_names_its_backend_and_keeps_the_contract() -> None:
    def double(number: int) -> int:
        return 2 * number

    with Sandbox.start(tools={"double": double}, backend="sandlock") as sandbox:
        assert sandbox.backend == "sandlock"
        assert sandbox.execute("open('note', 'w').write('text')\ndouble(21)").result == "42"
        assert sandbox.bash("cat note && ls > /dev/null && mktemp").stdout.startswith("text")
        archive = sandbox.snapshot()
        sandbox.bash("rm note")
        sandbox.reset(archive)
        assert sandbox.execute("open('note').read()").result == "'text'"


@pytest.mark.usefixtures("possible")
def test_a_pool_of_them_runs_episodes() -> None:
    def square(sandbox: Sandbox, number: int) -> str | None:
        return sandbox.execute(f"{number} ** 2").result

    with SandboxPool(ready=2, max_concurrency=4, backend="sandlock") as pool:
        assert pool.backend == "sandlock"
        outcomes = list(pool.run(range(6), square, deadline_seconds=60))
    assert {outcome.task: outcome.result for outcome in outcomes} == {n: str(n * n) for n in range(6)}


WRITE = "for n in range(10): open(str(n), 'wb').write(bytes(1 << 20))"
WRITE_NAMELESS = """
held = []
for n in range(4):
    held.append(open(str(n), 'wb'))
    os.remove(str(n))
    held[-1].write(bytes(4 << 20))
    held[-1].flush()
"""
DIG = "for n in range(40):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)"


@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize(
    ("code", "told"),
    [(WRITE, "more than 8 MB"), (WRITE_NAMELESS, "more than 8 MB"), (DIG, "files and folders")],
    ids=["named", "nameless", "deeper than a path can say"],
)
def test_files_are_looked_at_by_the_host(code: str, told: str) -> None:
    with Sandbox.start(Limits(disk_mb=8), backend="sandlock") as sandbox:
        assert told in (sandbox.execute(f"import os, time\n{code}\ntime.sleep(1000)").error or "")


@pytest.mark.usefixtures("possible")
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user, which takes root")
def test_ordinary_user_has_it_where_namespaces_are_forbidden_and_bubblewrap_is_refused() -> None:
    """As in a container: a seccomp filter refuses new namespaces and mounts to the whole program."""
    python = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not python.exists():
        pytest.skip(f"nobody may use this interpreter, and there is no {python}")
    program = """
        import errno, os, pyseccomp as seccomp
        from skillpress.play.sandbox import Limits, Sandbox, SandboxUnavailableError
        from skillpress.play.sandbox.seccomp import NEW_NAMESPACES
        rules = seccomp.SyscallFilter(seccomp.ALLOW)
        for name in ("unshare", "setns", "mount"):
            rules.add_rule(seccomp.ERRNO(errno.EPERM), name)
        for flag in NEW_NAMESPACES:
            masked = seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag)
            rules.add_rule(seccomp.ERRNO(errno.EPERM), "clone", masked)
        rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
        rules.load()
        try:
            Sandbox.start()
        except SandboxUnavailableError as error:
            print(error)
        with Sandbox.start(Limits(disk_mb=8), backend="sandlock") as sandbox:
            print(sandbox.execute("6 * 7").result)
            closed = "import os, time\\nos.mkdir('d')\\nos.chmod('d', 0)\\ntime.sleep(99)"
            print(sandbox.execute(closed).error)
    """
    refused, answer, closed = said_by_nobody(python, program, [str(ROOT), *filter(None, sys.path)])
    assert "bubblewrap cannot build a sandbox here" in refused and "seccomp" in refused
    assert answer == "42" and "files and folders" in closed
