"""Attacks on time, the sandbox's own end and processes: rows of the table in attacks.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from skillpress.rollouts.sandbox import Limits
from tests.support.rollouts import attacking
from tests.support.rollouts.attacking import (
    ROOT,
    SHARP,
    SOON,
    assert_ended,
    assert_goes_on,
    attack,
    gone,
    start,
)
from tests.support.rollouts.attacking import backend as backend

# Time


def test_attack_infinite_loop() -> None:
    with start(SOON) as sandbox:
        sandbox.execute("kept = 1")
        told = sandbox.execute("while True: pass").error
        assert told is not None and "longer than 3 seconds" in told and "variables are kept" in told
        assert sandbox.execute("kept").result == "1"


def test_attack_signals_ignored() -> None:
    assert_ended(
        attack("import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass", SHARP), "did not stop"
    )


def test_attack_signals_blocked() -> None:
    code = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(1000)"
    assert_ended(attack(code, SHARP), "did not stop")


def test_attack_interrupt_caught() -> None:
    code = "import time\nwhile True:\n    try:\n        time.sleep(1000)\n    except BaseException: pass"
    assert_ended(attack(code, SHARP), "did not stop")


def test_attack_c_code_holds_the_interpreter() -> None:
    assert_ended(attack("sum(range(10**13))", SHARP), "did not stop")


@pytest.mark.kills
def test_attack_stops_itself() -> None:
    assert_ended(attack("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", SHARP), "did not stop")


def test_attack_false_clock() -> None:
    code = "import time\ntime.monotonic = time.time = lambda: 0\ntime.clock_settime(time.CLOCK_REALTIME, 0)"
    with start(Limits(seconds=3, grace_seconds=0.2)) as sandbox:
        assert "PermissionError" in (sandbox.execute(code).error or "")
        assert_ended(sandbox.execute("import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass"))


def test_attack_display_never_ends() -> None:
    with start(SOON) as sandbox:
        told = sandbox.execute(
            "class Endless:\n    def __repr__(self):\n        while True: pass\nEndless()"
        ).error
        assert told is not None and "variables are kept" in told
        assert_goes_on(sandbox)


# Its own end


def test_attack_exit() -> None:
    with start() as sandbox:
        assert "SystemExit" in (sandbox.execute("raise SystemExit").error or "")
        assert_ended(sandbox.execute("import os\nos._exit(7)"), "exit code 7")


@pytest.mark.kills
def test_attack_kills_itself() -> None:
    assert_ended(attack("import os\nos.kill(os.getpid(), 9)"), "SIGKILL")


def test_attack_becomes_another_program() -> None:
    assert_ended(attack("import os\nos.execv('/usr/bin/sleep', ['sleep', '1000'])", SHARP))


def test_attack_crash() -> None:
    assert_ended(attack("import ctypes\nctypes.string_at(0)"), "SIGSEGV")


def test_attack_spoils_its_interpreter() -> None:
    code = "import builtins, json, sys\njson.dumps = None\nsys.modules.clear()\nbuiltins.__dict__.clear()"
    with start(SHARP) as sandbox:
        assert sandbox.execute(code).error
    with start() as other:
        assert_goes_on(other)


def test_attack_hostile_exception() -> None:
    code = (
        "class Hostile(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\n"
        "raise Hostile from Hostile()"
    )
    with start() as sandbox:
        assert "Hostile" in (sandbox.execute(code).error or "")
        assert_goes_on(sandbox)


# Processes


@pytest.mark.kills
def test_attack_daemon() -> None:
    code = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
    """
    with start() as sandbox:
        assert sandbox.execute(dedent(code)).error is None
        assert_goes_on(sandbox)
    assert gone(sandbox.first_pid)


@pytest.mark.kills
def test_attack_fork_bomb() -> None:
    code = "import os\nwhile True:\n    try:\n        os.fork()\n    except BlockingIOError: pass"
    with start(Limits(seconds=0.5, grace_seconds=0.2, processes=16)) as sandbox:
        assert sandbox.execute(code).error
    assert gone(sandbox.first_pid)


def test_attack_many_processes() -> None:
    code = "import os, time\nfor children in range(1000):\n    if os.fork() == 0:\n        time.sleep(1000)"
    with start(Limits(processes=16)) as sandbox:
        assert "BlockingIOError" in (sandbox.execute(code).error or "")
        assert int(sandbox.execute("children").result or "") <= 16


def test_attack_many_threads() -> None:
    code = (
        "import threading, time\n"
        "for threads in range(1000): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
    )
    with start(Limits(processes=16)) as sandbox:
        assert "can't start new thread" in (sandbox.execute(code).error or "")
        assert_goes_on(sandbox)


@pytest.mark.kills
def test_attack_kills_all() -> None:
    with start() as sandbox:
        assert sandbox.execute(f"import os\nos.kill({os.getpid()}, 9)").error  # the pid does not exist inside
        sandbox.execute("try: os.kill(-1, 9)\nexcept ProcessLookupError: pass")
        if attacking.BACKEND == "gVisor":  # it ends its sandbox, as by ending itself
            assert_ended(sandbox.execute("import time\nos.kill(1, 9)\ntime.sleep(1000)"), "SIGKILL")
        else:
            sandbox.execute("os.kill(1, 9)")  # process 1 ignores signals from its own namespace
            assert_goes_on(sandbox)


def test_attack_raises_its_limits() -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))"
    assert "not allowed to raise maximum limit" in (attack(code).error or "")


def test_attack_child_answers_for_it() -> None:
    with start() as sandbox:
        assert sandbox.execute("import os\nos.fork() and os.wait() and None").error is None
        assert_goes_on(sandbox)


@pytest.mark.kills
def test_attack_kill_of_the_host() -> None:
    program = """
        import time
        from skillpress.rollouts.sandbox import Sandbox
        from skillpress.rollouts.sandbox.processes import children_of_all, tree
        sandbox = Sandbox.start(isolation=ISOLATION)
        sandbox.execute("import os, time\\nif os.fork() == 0:\\n    os.setsid()\\n    time.sleep(1000)")
        print(*tree(sandbox.pid, children_of_all()), flush=True)
        time.sleep(1000)
    """
    program = program.replace("ISOLATION", repr(attacking.isolation()))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    host = subprocess.Popen(
        [sys.executable, "-c", dedent(program)], stdout=subprocess.PIPE, text=True, env=environment
    )
    with host:
        assert host.stdout is not None
        processes = [int(number) for number in host.stdout.readline().split()]
        assert len(processes) > 2 and all(Path(f"/proc/{pid}").exists() for pid in processes)
        host.kill()
    assert all(gone(pid) for pid in processes)
