"""A Jupyter kernel inside: magics, and everything else that every sandbox provides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError

import pytest

from skillpress.play.sandbox import Limits, Sandbox, SandboxUnavailableError, ToolError, jupyter

pytest.importorskip("ipykernel")


def double(number: int) -> int:
    """A tool."""
    if number < 0:
        raise ToolError("only what is above zero can be doubled")
    return 2 * number


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    limits = Limits(seconds=20, grace_seconds=60)
    with Sandbox.start(limits, {"double": double}, backend="jupyter") as sandbox:
        yield sandbox


def test_it_names_its_backend(sandbox: Sandbox) -> None:
    assert sandbox.backend == "jupyter"


def test_magics_shell_lines_and_help_work(sandbox: Sandbox) -> None:
    assert "per loop" in sandbox.execute("%timeit -n1 -r1 1").stdout
    assert sandbox.execute("%%writefile note\nline").error is None
    assert sandbox.execute("!cat note").stdout.strip() == "line"
    assert "Return the number of items" in sandbox.execute("?len").stdout


def test_state_values_output_and_displayed_objects_are_told(sandbox: Sandbox) -> None:
    sandbox.execute("number = 3")
    shown = sandbox.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\nnumber * 2")
    assert (shown.stdout, shown.stderr, shown.result) == ("out\n", "err\n", "6")
    assert sandbox.execute("_").result == "6"
    assert sandbox.execute("None").result is None
    assert sandbox.execute("from IPython.display import display\ndisplay({'a': 1})").stdout == "{'a': 1}\n"


def test_traceback_is_plain_and_short(sandbox: Sandbox) -> None:
    told = sandbox.execute("def deep(n):\n    return deep(n - 1) if n else 1 / 0\ndeep(100)").error or ""
    assert told.endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in told and len(told.splitlines()) < 30
    assert "SyntaxError" in (sandbox.execute("1 +").error or "")


def test_tools_are_called_by_the_main_thread(sandbox: Sandbox) -> None:
    assert sandbox.execute("double(21)").result == "42"
    assert "only what is above zero" in (sandbox.execute("double(-1)").error or "")
    assert "valid integer" in (sandbox.execute("double('x')").error or "")
    threads = (
        "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(1).map(double, [1]))"
    )
    assert "main thread only" in (sandbox.execute(threads).error or "")


def test_shell_and_working_folder_are_those_of_the_cells(sandbox: Sandbox) -> None:
    sandbox.execute("open('kept', 'w').write('from a cell')")
    assert sandbox.bash("cat kept").stdout == "from a cell"
    archive = sandbox.snapshot()
    sandbox.bash("rm kept")
    sandbox.reset(archive)
    assert sandbox.execute("open('kept').read()").result == "'from a cell'"


def test_nobody_types_anything(sandbox: Sandbox) -> None:
    assert "EOFError" in (sandbox.execute("input()").error or "")


def test_walls_are_those_of_bubblewrap(sandbox: Sandbox) -> None:
    code = "import os\n[path for path in ('/etc/passwd', '/work', '/sys') if os.path.exists(path)]"
    assert sandbox.execute(code).result == "[]"
    unreachable = "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"
    assert "PermissionError" in (sandbox.execute(unreachable).error or "")
    assert sandbox.execute(f"import os\nos.path.exists('/proc/{os.getpid()}')").result == "False"


def test_deadline_interrupts_and_keeps_variables() -> None:
    with Sandbox.start(Limits(seconds=3, grace_seconds=60), backend="jupyter") as sandbox:
        sandbox.execute("kept = 1")
        told = sandbox.execute("while True: pass").error or ""
        assert "variables are kept" in told and "KeyboardInterrupt" in told
        assert sandbox.execute("kept").result == "1"
        ended = sandbox.execute("import os\nos._exit(7)").error or ""
        assert "exit code 7" in ended and "files and processes are lost" in ended


@pytest.mark.kills
def test_cell_that_kills_the_runner_ends_its_own_sandbox() -> None:
    with Sandbox.start(backend="jupyter") as sandbox:
        told = sandbox.execute("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(1000)").error or ""
        assert "SIGKILL" in told and "files and processes are lost" in told


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(jupyter, "distribution", missing)
    jupyter.kernel_packages.cache_clear()
    try:
        with pytest.raises(SandboxUnavailableError, match=r"skillpress\[jupyter\]"):
            Sandbox.start(backend="jupyter")
    finally:
        jupyter.kernel_packages.cache_clear()
