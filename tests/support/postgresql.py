"""A cluster of Debian's PostgreSQL, for tests where SQLite would hide mistakes."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "skillpress"
START_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its address, and the user it runs as."""

    programs: Path
    port: int

    def create(self, database: str) -> str:
        """Make an empty database; returns its address without a scheme."""
        subprocess.run([*self._command("createdb"), database], check=True, timeout=60)
        return f"{USER}@127.0.0.1:{self.port}/{database}"

    def query(self, database: str, statement: str) -> list[str]:
        """The rows of a query, as text."""
        command = [*self._command("psql"), "--tuples-only", "--no-align", "--command"]
        found = subprocess.run(
            [*command, statement, database], capture_output=True, text=True, check=True, timeout=60
        )
        return found.stdout.splitlines()

    def ready(self) -> bool:
        """Whether the cluster accepts connections."""
        command = [*self._command("pg_isready"), "--quiet"]
        return subprocess.run(command, check=False, timeout=60).returncode == 0

    def _command(self, program: str) -> list[str]:
        return [
            str(self.programs / program), "--host", "127.0.0.1", "--port", str(self.port), "--username", USER,
        ]  # fmt: skip


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A new cluster on loopback. It ends with the block, and its files are deleted.

    PostgreSQL refuses to run as root. It then runs as Debian's user ``postgres``, who cannot enter pytest's
    folders.
    """
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    initdb = installed[-1] if installed else Path(shutil.which("initdb") or "initdb is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        made = Cluster(initdb.parent, int(probe.getsockname()[1]))
    folder = Path(tempfile.mkdtemp(prefix="skillpress-postgresql-"))
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    options = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync"]
    try:
        subprocess.run(
            [initdb, *options, "--pgdata", data],
            user=user, cwd=folder, stdout=subprocess.DEVNULL, check=True, timeout=120,
        )  # fmt: skip
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [initdb.with_name("postgres"), "-D", data, "-p", str(made.port), "-k", folder, "-F",
                 "-c", "listen_addresses=127.0.0.1"],
                user=user, cwd=folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            deadline = time.monotonic() + START_SECONDS
            while not made.ready():
                assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)
            yield made
        finally:
            server.send_signal(signal.SIGINT)  # "fast": connections are closed without waiting
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
    finally:
        shutil.rmtree(folder)
