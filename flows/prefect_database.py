"""Prefect's SQLite file, which gets its name when all its tables exist.

Prefect's server makes its tables when it first starts, one migration after another. If it is stopped in
between, the file has some of the tables, and every later start fails ("index ... already exists"). This
happens on a busy machine: a flow that is started by hand gives its server two minutes. So the tables are made
first, in a file with another name. Processes that would make them at the same time take turns.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TextIO

from flows import secret
from skillpress.core.errors import UserError
from skillpress.core.storage import make_folder, make_private_file, private
from skillpress.pipeline import exit_codes

PREFECT_DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"
LOG = "create.log"
SQLITE_HEAD = b"SQLite format 3\0"
"""How a file of SQLite begins."""
SECONDS = 600.0
"""Maximum time to make the tables, and to wait for another process that makes them."""
_MIGRATE = ("prefect", "--no-prompt", "server", "database", "upgrade", "--yes")


class PrefectDatabaseError(UserError):
    """Prefect's database cannot be made."""


def create_for_flow(check: Callable[[], object]) -> None:
    """Like :func:`create`, for a flow that is started by hand: it does nothing if the flow's server is
    another process's, and a failure ends the program with a line.

    Args:
        check: is called first, so that a wrong overlay waits for no database and no server.
    """
    try:
        check()
        if not secret.is_elsewhere():
            create()
    except UserError as error:
        exit_codes.say(error)
        raise SystemExit(exit_codes.USER_ERROR) from None


def create() -> None:
    """Make ``prefect.db`` in ``PREFECT_HOME`` if it is missing and no variable names another database.

    Raises:
        PrefectDatabaseError: Prefect's migrations failed or were not done in time, here or in another
            process; nothing of them is left.
    """
    home = Path(os.environ["PREFECT_HOME"])
    file, unfinished = home / "prefect.db", home / "unfinished.db"
    if PREFECT_DATABASE in os.environ:
        return
    check_database(file)
    if file.exists():
        return
    make_folder(home, private=True)  # Prefect also keeps its profiles there, which may hold keys
    with (home / "create.lock").open("w") as lock:
        _wait_for(lock, file)
        if file.exists():
            return
        for left in home.glob(f"{unfinished.name}*"):  # of a process that was killed
            left.unlink()
        make_private_file(unfinished)
        _migrate(unfinished)
        unfinished.replace(file)


def check_database(file: Path) -> None:
    """Refuse a file that SQLite did not write: Prefect's server would fail to start, with a traceback."""
    if file.is_dir() or (file.is_file() and file.stat().st_size and _head(file) != SQLITE_HEAD):
        raise PrefectDatabaseError(
            f"PREFECT_HOME: {file} is not an SQLite database; move it away, and a new one is made"
        )


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(SQLITE_HEAD))


def _wait_for(lock: TextIO, file: Path) -> None:
    """Take the lock, or return when the file is there."""
    ends = time.monotonic() + SECONDS
    while not file.exists():
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > ends:
            raise PrefectDatabaseError(
                f"{lock.name}: another process has made Prefect's database for {SECONDS:g} seconds and has "
                f"not finished; end it and start again (its log: {file.with_name(LOG)})"
            )
        time.sleep(0.2)


def _migrate(file: Path) -> None:
    environment = {**os.environ, PREFECT_DATABASE: f"sqlite+aiosqlite:///{file}"}
    log, failed = file.with_name(LOG), ""
    with open(log, "w", encoding="utf-8", opener=private) as said:
        try:
            subprocess.run(
                [sys.executable, "-m", *_MIGRATE],
                env=environment, stdout=said, stderr=said, timeout=SECONDS, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            failed = f"its migrations were not done within {SECONDS:g} seconds"
        except subprocess.CalledProcessError:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            failed = lines[-1] if lines else "it gave no reason"
    if failed or not file.stat().st_size:
        reason = failed or "it made no file"
        raise PrefectDatabaseError(
            f"{file.parent}: Prefect could not make its database: {reason} (log: {log})"
        )
    log.unlink()
    with closing(sqlite3.connect(file)) as database:  # what is in the -wal file goes into this one
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
