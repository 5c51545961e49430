"""The transactions of Prefect's server on SQLite, many at once, each of which reads and then writes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from flows.prefect_server import begin_immediately

WRITERS = 12


@pytest.fixture
def database(tmp_path: Path) -> AioSqliteConfiguration:
    return AioSqliteConfiguration(connection_url=f"sqlite+aiosqlite:///{tmp_path}/prefect.db")


@pytest.fixture
def taking_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AioSqliteConfiguration, "begin_transaction", begin_immediately)


async def count(session: AsyncSession) -> int:
    return int((await session.execute(text("SELECT value FROM counter"))).scalar_one())


async def add_one(database: AioSqliteConfiguration, meanwhile: Callable[[], Awaitable[None]]) -> None:
    """Read, let the others continue, write the value plus one."""
    async with (
        await database.session(await database.engine()) as session,
        database.begin_transaction(session),
    ):
        value = await count(session)
        await meanwhile()
        await session.execute(text("UPDATE counter SET value = :value"), {"value": value + 1})


async def counter(database: AioSqliteConfiguration) -> None:
    async with (
        await database.session(await database.engine()) as session,
        database.begin_transaction(session, with_for_update=True),
    ):
        await session.execute(text("CREATE TABLE counter (value INTEGER)"))
        await session.execute(text("INSERT INTO counter VALUES (0)"))


async def read(database: AioSqliteConfiguration) -> int:
    async with await database.session(await database.engine()) as session:
        return await count(session)


async def pause() -> None:
    await asyncio.sleep(0.01)


async def all_at_once(database: AioSqliteConfiguration) -> tuple[list[BaseException], int]:
    """(errors of the writers, the counter after all of them)."""
    await counter(database)
    ended = await asyncio.gather(*[add_one(database, pause) for _ in range(WRITERS)], return_exceptions=True)
    return [error for error in ended if error is not None], await read(database)


def test_prefect_alone_refuses_transactions_whose_snapshot_has_aged(database: AioSqliteConfiguration) -> None:
    failures, value = asyncio.run(all_at_once(database))
    assert failures and value == WRITERS - len(failures)
    for failure in failures:
        assert isinstance(failure, OperationalError) and "database is locked" in str(failure)


@pytest.mark.usefixtures("taking_turns")
def test_every_transaction_reads_what_the_one_before_it_wrote(database: AioSqliteConfiguration) -> None:
    assert asyncio.run(all_at_once(database)) == ([], WRITERS)


@pytest.mark.usefixtures("taking_turns")
def test_reading_does_not_wait_for_a_transaction_even_from_inside_of_it(
    database: AioSqliteConfiguration,
) -> None:
    seen: list[int] = []

    async def look() -> None:
        seen.append(await read(database))

    async def scenario() -> None:
        await counter(database)
        await add_one(database, look)
        await look()

    asyncio.run(asyncio.wait_for(scenario(), timeout=10))
    assert seen == [0, 1]


@pytest.mark.usefixtures("taking_turns")
def test_a_transaction_that_is_cancelled_or_fails_gives_its_turn_back_and_writes_nothing(
    database: AioSqliteConfiguration,
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async def scenario() -> int:
        await counter(database)
        inside = asyncio.Event()

        async def stay() -> None:
            inside.set()
            await asyncio.sleep(600)

        cancelled = asyncio.create_task(add_one(database, stay))
        await inside.wait()
        waiting = asyncio.create_task(add_one(database, pause))
        given_up = asyncio.create_task(add_one(database, pause))
        await pause()
        given_up.cancel()
        cancelled.cancel()
        await waiting
        with pytest.raises(ZeroDivisionError):
            await add_one(database, fail)
        await add_one(database, pause)
        return await read(database)

    assert asyncio.run(asyncio.wait_for(scenario(), timeout=10)) == 2
