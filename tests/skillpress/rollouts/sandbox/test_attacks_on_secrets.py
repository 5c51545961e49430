"""Attacks on secrets, the network and the kernel: rows of the table in attacks.md."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from skillpress.rollouts.sandbox import Limits
from tests.support.rollouts import attacking
from tests.support.rollouts.attacking import (
    ROOT,
    SECRET,
    SYSCALL,
    assert_ended,
    attack,
    start,
    x86_64,
)
from tests.support.rollouts.attacking import backend as backend

# Other processes' secrets


def test_attack_host_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    code = f"""
        import glob, os
        found = str(os.environ)
        for name in [*glob.glob('/proc/[0-9]*/*'), *glob.glob('/proc/self/*'), '/proc/{os.getpid()}/environ']:
            try:
                found += open(name, errors='replace').read()
            except OSError:
                pass
        {SECRET[::-1]!r}[::-1] in found, len(found) > 1000
    """
    assert attack(dedent(code)).result == "(False, True)"


def test_attack_host_processes() -> None:
    code = f"""
        import os
        try:
            own = {{1, os.getpid(), os.getppid()}}
            others = {{int(name) for name in os.listdir('/proc') if name.isdigit()}} - own
        except PermissionError:
            others = set()
        read = []
        for name in ('status', 'cmdline', 'maps', 'environ', 'mem'):
            try:
                read.append(open(f'/proc/{os.getpid()}/{{name}}', 'rb'))
            except OSError:
                pass
        others, read
    """
    assert attack(dedent(code)).result == "(set(), [])"


def test_attack_inherited_descriptors() -> None:
    code = """
        import os
        paths = [f'/proc/self/fd/{number}' for number in range(1024)]
        sorted({os.readlink(path).split(':')[0] for path in paths if os.path.exists(path)})
    """
    with open(__file__) as held:
        os.set_inheritable(held.fileno(), True)
        kinds = "'host'" if attacking.BACKEND == "gVisor" else "'pipe', 'socket'"
        assert attack(dedent(code)).result == f"['/dev/null', {kinds}]"


@x86_64
def test_attack_memory_of_others() -> None:
    calls = "{call(101, 16, 1, 0, 0), *[call(number, 1, 0, 0, 0, 0, 0) for number in (310, 311, 312, 438)]}"
    assert attack(SYSCALL + calls).result == "{'EPERM'}"


def test_attack_memory_of_the_interpreter() -> None:
    """The interpreter knows the numbers of the host's requests; a command that it starts must not know
    them."""
    names = ["mem"] if attacking.BACKEND == "gVisor" else ["mem", "environ", "auxv"]
    look = f"""
        import os
        read = []
        for name in {names}:
            try:
                read.append(open(f'/proc/{{os.getppid()}}/{{name}}', 'rb'))
            except PermissionError:
                pass
        print(read)
    """
    with start() as sandbox:
        sandbox.execute(f"open('look.py', 'w').write({dedent(look)!r})")
        told = sandbox.execute(
            "import subprocess, sys\nsubprocess.run([sys.executable, 'look.py']).returncode"
        )
        assert (told.result, told.stdout) == ("0", "[]\n"), told


@x86_64
def test_attack_memory_opened_again() -> None:
    assert attack(SYSCALL + "call(157, 4, 1, 0, 0, 0)").result == "'EPERM'"


def test_attack_host_packages() -> None:
    code = """
        import glob, os, sys
        patterns = [f'{place}/lib*/python3*/*-packages' for place in (sys.prefix, '/usr', '/usr/local')]
        [file for pattern in patterns for place in glob.glob(pattern) for file in os.listdir(place)]
    """
    assert attack(dedent(code)).result == "[]"


@pytest.mark.skipif(Path(sys.base_prefix).is_relative_to("/usr"), reason="/usr is the same everywhere")
def test_attack_host_paths() -> None:
    code = """
        import glob, json, sys, sysconfig, traceback
        seen = [sys.path, sys.executable, sys.prefix, sysconfig.get_config_vars(), sysconfig.get_paths()]
        try:
            json.loads('{')
        except ValueError:
            seen.append(traceback.format_exc())
        for name in [*glob.glob('/proc/[0-9]*/*'), *glob.glob('/proc/self/*')]:
            try:
                seen.append(open(name, errors='replace').read() if 'mountinfo' not in name else '')
            except OSError:
                pass
        open('seen', 'w').write(str(seen))
    """
    with start() as sandbox:
        assert sandbox.execute(dedent(code)).error is None
        for path in {sys.base_prefix, str(Path(sys.base_prefix).resolve()), str(ROOT), sys.prefix}:
            assert sandbox.bash(f"grep -c {path[1:]} seen").stdout == "0\n"


# Network


def test_attack_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        told = attack(code).error or ""
        assert "ConnectionRefusedError" in told or "PermissionError" in told


def test_attack_internet() -> None:
    code = "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"
    told = attack(code).error or ""
    assert any(words in told for words in ("Network is unreachable", "No route to host", "PermissionError"))
    assert "gaierror" in (attack("import socket\nsocket.getaddrinfo('example.org', 80)").error or "")


def test_attack_ip_sockets() -> None:
    code = """
        import socket
        made = []
        for family in (socket.AF_INET, socket.AF_INET6):
            for kind in ('SOCK_STREAM', 'SOCK_DGRAM'):
                try:
                    socket.socket(family, getattr(socket, kind))
                    made.append(kind)
                except PermissionError:
                    pass
        made
    """
    assert attack(dedent(code)).result == "[]"
    asked_for = attack(dedent(code), Limits(ip_sockets=True)).result or ""
    assert asked_for.count("SOCK_STREAM") == 2


def test_attack_abstract_socket() -> None:
    name = f"\0host-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = f"import socket\nsocket.socket(socket.AF_UNIX).connect({name!r})"
        told = attack(code).error or ""
        assert "ConnectionRefusedError" in told or "PermissionError" in told


def test_attack_other_sockets() -> None:
    code = (
        "import socket\nopened = []\nfor family in range(11, 60):\n"
        "    try:\n        socket.socket(family, socket.SOCK_RAW)\n        opened.append(family)\n"
        "    except PermissionError: pass\nopened"
    )
    assert attack(code).result == "[]"  # netlink 16, packet 17, alg 38, vsock 40, and all others


# The kernel


@x86_64
def test_attack_nested_namespaces() -> None:
    user = 0x10000000
    calls = f"[call(272, {user}), call(56, {user} | 17, 0, 0, 0, 0), call(308, 0, 0), call(435, 0, 0)]"
    assert attack(SYSCALL + calls).result == str(["EPERM"] * 3 + ["ENOSYS"])


@x86_64
def test_attack_mount() -> None:
    numbers = [165, 166, 155, 161, 428, 429, 430, 431, 432, 433, 442]
    calls = f"{{call(number, 0, 0, 0, 0, 0) for number in {numbers}}}"
    assert attack(SYSCALL + calls).result == "{'EPERM'}"


@x86_64
def test_attack_kernel_interfaces() -> None:
    numbers = {"io_uring": 425, "bpf": 321, "perf": 298, "userfaultfd": 323, "keyctl": 250, "fanotify": 300}
    calls = f"{{call(number, 0, 0, 0, 0, 0) for number in {list(numbers.values())}}}"
    assert attack(SYSCALL + calls).result == "{'EPERM'}"


@x86_64
def test_attack_system_calls_of_another_architecture() -> None:
    assert_ended(attack(SYSCALL + "call(0x40000000 + 101, 0, 0, 0, 0)"), "SIGSYS")


USERS = "import os\n0 in (*os.getresuid(), *os.getresgid(), *os.getgroups())"


def test_attack_setuid() -> None:
    code = "import ctypes, os\nassert ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1\nos.setuid(0)"
    with start() as sandbox:
        assert "Error: [Errno" in (sandbox.execute(code).error or "")
        assert sandbox.execute(USERS).result == "False"


def test_attack_settings_of_the_kernel() -> None:
    code = "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')"
    assert "Error" in (attack(code).error or "")
