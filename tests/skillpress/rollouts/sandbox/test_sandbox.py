"""A sandbox: a notebook's lasting interpreter, its tools, its shell and its working folder."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox import (
    Limits,
    Sandbox,
    SandboxEndedError,
    SandboxLostError,
    SandboxPool,
    ToolError,
    processes,
)
from tests.support.rollouts.held import held_descriptors

MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
"""Folder of version 1 cgroups, if the tests can create some."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as sandbox:
        yield sandbox


def test_an_unknown_isolation_is_refused_with_those_that_exist() -> None:
    docker: Any = "docker"
    for start in (Sandbox.start, SandboxPool):
        with pytest.raises(UserError, match="sandbox isolation: 'docker' is not one of bubblewrap, gvisor"):
            start(isolation=docker)


def test_variables_functions_and_imports_last(sandbox: Sandbox) -> None:
    sandbox.execute("import math\ndef area(radius): return math.pi * radius**2")
    assert sandbox.execute("round(area(1), 2)").result == "3.14"


def test_value_of_a_last_expression_is_shown(sandbox: Sandbox) -> None:
    assert sandbox.execute("word = 'a'\nword * 3").result == "'aaa'"
    assert sandbox.execute("_").result == "'aaa'"
    assert sandbox.execute("word = 'b'").result is None
    assert sandbox.execute("None").result is None
    assert sandbox.execute("").error is None


def test_output_of_python_of_children_and_of_c_is_seen(sandbox: Sandbox) -> None:
    shown = sandbox.execute(
        "import os, sys\nprint('python')\nos.system('echo child')\nos.write(2, b'c')\nNone"
    )
    assert set(shown.stdout.split()) == {"python", "child"} and shown.stderr == "c"


def test_traceback_is_short_and_of_the_agents_code_only(sandbox: Sandbox) -> None:
    told = sandbox.execute("def deep(n):\n    return deep(n - 1) if n else 1 / 0\ndeep(100)").error or ""
    assert told.endswith("ZeroDivisionError: division by zero")
    assert "return deep(n - 1) if n else 1 / 0" in told
    assert "runner.py" not in told and len(told.splitlines()) < 20
    assert "SyntaxError" in (sandbox.execute("1 +").error or "")


def test_long_texts_are_cut_in_the_middle() -> None:
    with Sandbox.start(Limits(shown_characters=1000)) as sandbox:
        shown = sandbox.execute("print('a' * 5000)\n'é' * 100_000")
        assert shown.truncated and "left out" in shown.stdout and "left out" in (shown.result or "")
        assert len(shown.stdout) < 1100 and len(shown.result or "") < 1100
        assert not sandbox.execute("print('a' * 500)").truncated


def test_tools_are_called_like_functions() -> None:
    def search(query: str, k: int = 2) -> list[str]:
        if not query:
            raise ToolError("a query is needed")
        return [f"{query} {number}" for number in range(k)]

    with Sandbox.start(tools={"search": search}) as sandbox:
        assert sandbox.execute("search('paper', k=3)[-1]").result == "'paper 2'"
        assert (sandbox.execute("search('')").error or "").endswith("ToolError: a query is needed")
        sandbox.execute("from concurrent.futures import ThreadPoolExecutor")
        assert (
            sandbox.execute("list(ThreadPoolExecutor(4).map(search, 'abc'))").result
            == "[['a 0', 'a 1'], ['b 0', 'b 1'], ['c 0', 'c 1']]"
        )
        sandbox.use_tools({"submit": lambda answer: None})
        assert sandbox.execute("submit('42')").error is None


def test_a_tools_own_mistake_is_the_hosts_to_see() -> None:
    def broken() -> None:
        raise KeyError("in the host's code")

    with Sandbox.start(tools={"broken": broken}) as sandbox:
        with pytest.raises(KeyError):
            sandbox.execute("broken()")
        assert not sandbox.alive


def test_bash_shares_the_folder_and_tells_its_exit_code(sandbox: Sandbox) -> None:
    sandbox.execute("open('note', 'w').write('from python')")
    shown = sandbox.bash("cat note; echo wrong >&2; exit 3")
    assert (shown.stdout, shown.stderr) == ("from python", "wrong\n")
    assert shown.error == "the command ended with exit code 3"
    assert sandbox.bash("true").error is None


def test_a_module_that_is_edited_twice_within_a_second_runs_as_it_is(sandbox: Sandbox) -> None:
    for said in ("one", "two", "six"):
        sandbox.bash(f"echo 'said = \"{said}\"' > module.py; touch -d @1000000000 module.py")
        assert sandbox.bash("python3 -c 'import module; print(module.said)'").stdout == f"{said}\n"


def test_bash_ends_at_its_deadline_with_what_it_started() -> None:
    with Sandbox.start(Limits(seconds=3, grace_seconds=60)) as sandbox:
        assert "variables are kept" in (sandbox.bash("sleep 1000 | sleep 1000").error or "")
        assert sandbox.bash("pgrep sleep || ! ls /proc/[0-9]*/comm | xargs grep -l sleep").error is None


def test_working_folder_comes_back_in_this_sandbox_and_in_another(sandbox: Sandbox) -> None:
    sandbox.bash("mkdir -p deep/er; echo first > deep/er/file; ln -s deep link; chmod 700 deep")
    archive = sandbox.snapshot()
    sandbox.bash("rm -r deep; echo > other")
    sandbox.reset(archive)
    assert sandbox.bash("cat link/er/file; ls other").stdout == "first\n"
    with Sandbox.start() as other:
        other.reset(archive)
        assert other.bash("cat link/er/file").stdout == "first\n"


def test_what_is_over_says_so() -> None:
    with Sandbox.start() as sandbox:
        sandbox.execute("import os\nos._exit(3)")
        assert not sandbox.alive
        with pytest.raises(SandboxEndedError, match="its interpreter had ended"):
            sandbox.execute("1")
    with Sandbox.start() as closed:
        pass
    closed.close()
    with pytest.raises(SandboxEndedError, match="It was closed"):
        closed.execute("1")


@pytest.mark.kills
def test_killed_from_outside_is_no_doing_of_the_agent() -> None:
    with Sandbox.start() as sandbox:
        sandbox.use_tools({"strike": lambda: os.kill(sandbox.pid, signal.SIGKILL)})
        with pytest.raises(SandboxLostError, match="killed from outside"):
            sandbox.execute("strike()\nimport time\ntime.sleep(100)")


SUICIDE = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.kills
def test_killed_by_the_kernel_for_want_of_memory_is_no_doing_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender of a SIGKILL cannot be determined, but the kernel counts its own."""
    counts = tmp_path / "vmstat"
    monkeypatch.setattr(processes, "KERNEL_COUNTS", counts)
    counts.write_text("nr_free_pages 5\noom_kill 7\n")
    with Sandbox.start() as sandbox:
        assert "SIGKILL" in (sandbox.execute(SUICIDE).error or ""), "the agent's own doing"

    def scarce() -> None:
        counts.write_text("nr_free_pages 5\noom_kill 8\n")

    for call in ("execute", "bash"):
        counts.write_text("nr_free_pages 5\noom_kill 7\n")
        with Sandbox.start(tools={"scarce": scarce}) as sandbox:
            if call == "execute":
                with pytest.raises(SandboxLostError, match="the kernel killed"):
                    sandbox.execute(f"scarce()\n{SUICIDE}")
            else:
                threading.Timer(0.5, scarce).start()
                with pytest.raises(SandboxLostError, match="the kernel killed"):
                    sandbox.bash("sleep 2; sh -c 'kill -9 $$'")
            assert not sandbox.alive


@pytest.mark.kills
def test_without_a_count_of_the_kernels_a_kill_is_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KERNEL_COUNTS", tmp_path / "none")
    with Sandbox.start() as sandbox:
        assert "SIGKILL" in (sandbox.execute(SUICIDE).error or "")


@pytest.mark.skipif(not os.access(MEMORY_GROUPS, os.W_OK), reason="memory cgroups are not ours to make here")
def test_the_kernels_memory_killer_itself_is_told_from_the_agent() -> None:
    group = MEMORY_GROUPS / f"skillpress-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(64 << 20))
        with Sandbox.start() as sandbox:
            for pid in processes.tree(sandbox.first_pid, processes.children_of_all()):
                (group / "cgroup.procs").write_text(str(pid))
            with pytest.raises(SandboxLostError, match="the kernel killed"):
                sandbox.execute("held = [bytes(b'x' * (1 << 20)) for _ in range(200)]")
    finally:
        group.rmdir()


def test_nothing_is_left_open() -> None:
    with Sandbox.start():
        pass
    before = held_descriptors()
    for _ in range(3):
        with Sandbox.start() as sandbox:
            sandbox.execute("1")
    assert not held_descriptors() - before  # what other tests have left may be closed meanwhile


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"memory_mb": -1}, {"shown_characters": 10**6}])
def test_limits_that_cannot_be_are_named(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))}"):
        Limits(**wrong)


def test_tools_have_names_of_functions() -> None:
    with pytest.raises(UserError, match="'no name' cannot be"):
        Sandbox.start(tools={"no name": print})
