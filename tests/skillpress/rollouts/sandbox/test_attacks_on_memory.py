"""Attacks that fill memory and disks: rows of the table in attacks.md."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from skillpress.rollouts.sandbox import Limits, SandboxEndedError
from tests.support.rollouts import attacking
from tests.support.rollouts.attacking import (
    ROOT,
    SECRET,
    SYSCALL,
    assert_ended,
    assert_goes_on,
    attack,
    start,
    x86_64,
)
from tests.support.rollouts.attacking import backend as backend

# Memory


def test_attack_one_allocation() -> None:
    with start(Limits(memory_mb=64)) as sandbox:
        assert "MemoryError" in (sandbox.execute("bytes(10**9)").error or "")
        assert_goes_on(sandbox)


def test_attack_memory_of_one_process() -> None:
    code = "import time\nheld = b'x' * (128 << 20)\ntime.sleep(1000)"
    assert_ended(attack(code, Limits(memory_mb=64)), "more than 64 MB of memory")


def test_attack_memory_of_eight_processes() -> None:
    code = (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        held = b'x' * (20 << 20)\n"
        "        time.sleep(1000)\ntime.sleep(1000)"
    )
    assert_ended(attack(code, Limits(memory_mb=100)), "more than 100 MB of memory")


@x86_64
def test_attack_memory_of_no_process() -> None:
    calls = "[call(319, 0, 0), call(447, 0), call(29, 0, 4096, 512), call(68, 0, 512), call(240, 0, 0, 0, 0)]"
    assert attack(SYSCALL + calls).result == str(["EPERM"] * 5)


def test_attack_memory_of_sockets() -> None:
    code = """
        import os, socket, time
        def fill():
            pair = socket.socketpair()
            for end in pair:
                end.setblocking(False)
                try:
                    while True: end.send(bytes(65536))
                except BlockingIOError: pass
            return pair
        for _ in range(6):
            if os.fork() == 0:
                held = [fill() for _ in range(50)]
                time.sleep(1000)
        time.sleep(1000)
    """
    told = attack(dedent(code), Limits(memory_mb=128, seconds=60))
    assert_ended(told, "more than 128 MB", "sockets counted")


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_attack_memory_of_waiting_messages(kind: str) -> None:
    code = f"""
        import os, socket, time
        stream = socket.{kind} == socket.SOCK_STREAM
        receivers = []
        for place in range(40):
            receivers.append(socket.socket(socket.AF_UNIX, socket.{kind}))
            receivers[-1].bind(f"/tmp/{{place}}")
            if stream: receivers[-1].listen(10)
            for _ in range(10):
                sender = socket.socket(socket.AF_UNIX, socket.{kind})
                sender.connect(f"/tmp/{{place}}")
                sender.send(bytes(100_000))
                sender.close()  # what it has sent is still there
        time.sleep(10)
    """
    if kind == "SOCK_DGRAM" and "gVisor" in attacking.BACKEND:  # a third message waits for a reader
        told = attack(dedent(code), Limits(memory_mb=64, seconds=8)).error or ""
        assert "did not stop" in told or "longer than 8 seconds" in told
    else:
        assert_ended(attack(dedent(code), Limits(memory_mb=64, seconds=60)), "more than 64 MB")


def test_attack_large_buffers() -> None:
    code = """
        import fcntl, os, socket
        socket_, _ = socket.socketpair()
        before = socket_.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        try:
            piped = fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 20)
        except PermissionError:
            piped = 0
        socket_.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - before, piped
    """
    assert attack(dedent(code)).result == "(0, 0)"


def test_attack_descriptors() -> None:
    code = "import os\nheld = []\nwhile True: held.append(os.pipe())"
    with start() as sandbox:
        assert "Too many open files" in (sandbox.execute(code).error or "")
        sandbox.execute("for pair in held:\n    for end in pair: os.close(end)")
        assert_goes_on(sandbox)


# Files


@pytest.mark.parametrize("place", ["os.getcwd()", "tempfile.gettempdir()", "'/dev/shm'"])
def test_attack_full_disk(place: str) -> None:
    code = f"""
        import os, tempfile, time
        for number in range(10):
            with open(os.path.join({place}, str(number)), 'wb') as file:
                file.write(bytes(4 << 20))
        time.sleep(1000)
    """
    with start(Limits(disk_mb=8)) as sandbox:
        told = sandbox.execute(dedent(code)).error or ""
        assert any(words in told for words in ("No space left", "more than 8 MB", "Permission denied"))


def test_attack_one_large_file() -> None:
    assert "File too large" in (attack("open('f', 'wb').truncate(1 << 40)", Limits(disk_mb=8)).error or "")


def test_attack_million_files() -> None:
    code = (
        "import os, tempfile, time\nos.chdir(tempfile.gettempdir())\n"
        "for number in range(5000): open(str(number), 'w').close()\ntime.sleep(1000)"
    )
    assert_ended(attack(code, Limits(inodes=2000, seconds=60)), "more than 2000 files")


def test_attack_write_elsewhere() -> None:
    code = """
        import os
        written = []
        for place in ['/', '/usr', '/usr/bin', '/opt', '/opt/agent', '/dev', '/home', '/proc', '/etc']:
            try:
                open(os.path.join(place, 'x'), 'w')
                written.append(place)
            except OSError:
                pass
        written
    """
    assert attack(dedent(code)).result == "[]"


HOST_FILES = ["/etc/passwd", "/etc/shadow", "/root/.ssh", "/var/log", "/sys", str(ROOT), __file__]


def test_attack_host_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    code = f"""
        import os
        read = []
        for place in {[*HOST_FILES, str(tmp_path / "secret")]}:
            for look in (open, os.listdir):
                try:
                    look(place)
                    read.append(place)
                except OSError:
                    pass
        read
    """
    assert attack(dedent(code)).result == of_its_own_kernel()


def of_its_own_kernel() -> str:
    """What is there and is not the host's."""
    return "['/sys']" if attacking.BACKEND == "gVisor" else "[]"


def test_attack_host_file_names() -> None:
    code = f"import os\n[place for place in {HOST_FILES} if os.path.exists(place)]"
    assert attack(code).result == of_its_own_kernel()


def test_attack_devices() -> None:
    code = """
        opened = []
        for name in ['mem', 'kmsg', 'kvm', 'vda', 'sda', 'fuse', 'tty']:
            try:
                opened.append(open('/dev/' + name))
            except OSError:
                pass
        opened
    """
    assert attack(dedent(code)).result == "[]"


def test_attack_traps_in_the_folder() -> None:
    code = (
        "import os\nos.mkfifo('fifo')\nos.symlink('/etc/passwd', 'link')\nos.symlink('loop', 'loop')\n"
        "os.makedirs('d' * 200 + '/' + 'e' * 200)"
    )
    with start() as sandbox:
        assert sandbox.execute(code).error is None
        archive = sandbox.snapshot()
    with start() as other:
        other.reset(archive)
        shown = other.execute("import os\nos.readlink('link'), len(os.listdir('.'))").result
        assert shown == "('/etc/passwd', 4)"


def test_attack_names_that_are_no_text() -> None:
    with start() as sandbox:
        assert sandbox.execute("open('\\udcff', 'w').close()").error is None
        archive = sandbox.snapshot()
        sandbox.reset(archive)
        assert sandbox.execute("import os\nos.listdir('.')").result == "['\\udcff']"


def test_attack_forged_archive() -> None:
    code = """
        import tarfile
        def endless(archive, *_, **__):
            while True:
                archive.fileobj.write(bytes(1 << 20))
        tarfile.TarFile.add = endless
    """
    with start(Limits(disk_mb=8, inodes=1000)) as sandbox:
        sandbox.execute(dedent(code))
        with pytest.raises(SandboxEndedError, match="an archive is larger than the folder may be"):
            sandbox.snapshot()
