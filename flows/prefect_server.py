"""``prefect server start``, whose SQLite transactions take turns instead of failing.

    python -m flows.prefect_server

Prefect's server works on many transactions at once. Its own handling of SQLite then goes wrong twice, and
longer timeouts make the second worse:

- Most transactions begin "deferred": they take the lock for writing at their first write. When one has read
  before, and another has written since, SQLite refuses at once with "database is locked". It does not wait,
  for what was read is out of date.
- A transaction that does wait, does so inside SQLite, for up to a minute. When Python meanwhile collects a
  cursor that an earlier failure left on that connection, it waits for the connection and keeps the
  interpreter's lock. Everything in the process stands still, also the transaction that holds SQLite's lock,
  until the minute is over and all those waiting fail.

Here a transaction waits for its turn in Python, and takes SQLite's lock when it begins ("immediate").
Reading outside of transactions is not held up. PostgreSQL is not affected.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

from prefect.cli import app
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction

TURN_SECONDS = 60.0
"""After that a transaction tries SQLite's own lock; it may be inside of the one that it waits for."""
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def turn() -> AsyncGenerator[None, None]:
    """The right to write, first come first served."""
    lock = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    mine = False
    with suppress(TimeoutError):
        mine = await asyncio.wait_for(lock.acquire(), TURN_SECONDS)
    try:
        yield
    finally:
        if mine:
            lock.release()


@asynccontextmanager
async def begin_immediately(
    self: AioSqliteConfiguration, session: AsyncSession, with_for_update: bool = False
) -> AsyncGenerator[AsyncSessionTransaction, None]:
    """What replaces ``AioSqliteConfiguration.begin_transaction``."""
    async with turn(), session.begin() as transaction:
        token = SQLITE_BEGIN_MODE.set("IMMEDIATE")
        try:
            await session.connection()  # sends BEGIN
        finally:
            SQLITE_BEGIN_MODE.reset(token)  # sessions that are opened inside of this one only read
        yield transaction


def take_turns() -> None:
    """Let the SQLite transactions of this process take turns."""
    AioSqliteConfiguration.begin_transaction = begin_immediately  # type: ignore[method-assign]


def main() -> None:
    """``prefect server start``, with its options."""
    take_turns()
    sys.argv[1:1] = ["server", "start"]
    app()


if __name__ == "__main__":
    main()
