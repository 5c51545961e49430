"""Prefect's SQLite file, which gets its name when all its tables are there.

Prefect's server makes its tables when it first starts, one migration after another. If it is stopped in
between, the file has some of the tables, and every later start fails ("index ... already exists"). This
happens on a busy machine: a flow that is started by hand gives its server two minutes. So the tables are made
before, in a file of another name. Processes that would make them at the same time take turns.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from flows import secret
from skillpress.core.errors import UserError
from skillpress.pipeline import exit_codes

PREFECT_DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"
_MIGRATE = ("prefect", "--no-prompt", "server", "database", "upgrade", "--yes")


class PrefectDatabaseError(UserError):
    """Prefect's database cannot be made."""


def create_for_flow() -> None:
    """Like :func:`create`, for a flow that is started by hand: it does nothing if the flow's server is
    another process's, and a failure ends the program with a line."""
    if secret.is_elsewhere():
        return
    try:
        create()
    except PrefectDatabaseError as error:
        exit_codes.say(error)
        raise SystemExit(exit_codes.USER_ERROR) from None


def create() -> None:
    """Make ``prefect.db`` in ``PREFECT_HOME`` if it is missing and no variable names another database.

    Raises:
        PrefectDatabaseError: Prefect's migrations failed; nothing of them is left.
    """
    home = Path(os.environ["PREFECT_HOME"])
    file, unfinished = home / "prefect.db", home / "unfinished.db"
    if PREFECT_DATABASE in os.environ or file.exists():
        return
    home.mkdir(parents=True, exist_ok=True)
    with (home / "create.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if file.exists():
            return
        for left in home.glob(f"{unfinished.name}*"):  # of a process that was killed
            left.unlink()
        _migrate(unfinished)
        unfinished.replace(file)


def _migrate(file: Path) -> None:
    environment = {**os.environ, PREFECT_DATABASE: f"sqlite+aiosqlite:///{file}"}
    done = subprocess.run(
        [sys.executable, "-m", *_MIGRATE], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or not file.exists():
        said = (done.stderr or done.stdout).strip().splitlines() or ["it gave no reason"]
        raise PrefectDatabaseError(f"{file.parent}: Prefect could not make its database: {said[-1]}")
    with closing(sqlite3.connect(file)) as database:  # what is in the -wal file goes into this one
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
