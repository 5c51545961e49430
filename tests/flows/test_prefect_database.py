"""Prefect's database appears as a whole: what an interrupted creation leaves stops no later start."""

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from flows import prefect_database, secret
from flows.prefect_database import PREFECT_DATABASE, PrefectDatabaseError, create, create_for_flow
from skillpress.core.errors import ParamsError
from skillpress.pipeline import exit_codes


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "prefect"
    monkeypatch.setattr(os, "environ", {**os.environ, "PREFECT_HOME": str(folder)})
    for name in (PREFECT_DATABASE, *secret.ELSEWHERE):
        os.environ.pop(name, None)
    return folder


def tables(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


@pytest.mark.slow
def test_it_is_made_anew_beside_half_made_tables_and_is_its_owners_alone(home: Path) -> None:
    home.mkdir()
    with closing(sqlite3.connect(home / "unfinished.db")) as database:
        database.execute("CREATE TABLE flow (id INTEGER)")  # Prefect's first migration makes this one
    before = os.umask(0o022)
    create()
    os.umask(before)
    assert (home / "prefect.db").stat().st_mode & 0o777 == 0o600
    assert {"flow", "flow_run", "deployment", "block_document"} <= tables(home / "prefect.db")
    assert {file.name for file in home.iterdir()} <= {"prefect.db", "create.lock", "profiles.toml"}


def test_migrations_that_fail_leave_no_database_and_are_said_in_a_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prefect_database, "_MIGRATE", ("json.tool", "--no-such-option"))
    with pytest.raises(PrefectDatabaseError, match=r"could not make its database: .*no-such-option"):
        create()
    with pytest.raises(SystemExit) as end:
        create_for_flow(lambda: None)
    assert end.value.code == exit_codes.USER_ERROR
    assert "could not make its database" in capsys.readouterr().err
    assert not (home / "prefect.db").exists()
    assert home.stat().st_mode & 0o777 == 0o700, "Prefect keeps profiles and logs there too"


def test_what_the_flow_is_to_run_is_checked_before_any_database_is_made(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def check() -> None:
        raise ParamsError("params/mine.yaml: training.setps: unknown key")

    with pytest.raises(SystemExit) as end:
        create_for_flow(check)
    assert end.value.code == exit_codes.USER_ERROR
    assert "training.setps: unknown key" in capsys.readouterr().err
    assert not home.exists()


@pytest.mark.timeout(60)
def test_migrations_that_take_too_long_are_ended_and_their_log_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect_database, "_MIGRATE", ("http.server", "0"))  # it never ends by itself
    monkeypatch.setattr(prefect_database, "SECONDS", 1.0)
    with pytest.raises(PrefectDatabaseError, match=r"not done within 1 seconds \(log: .*create\.log\)"):
        create()


@pytest.mark.timeout(60)
def test_who_waits_for_another_process_gives_up_and_says_so_but_takes_what_it_has_made(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect_database, "SECONDS", 1.0)
    home.mkdir()
    with (home / "create.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(PrefectDatabaseError, match=r"create\.lock: another process .*\(its log: .*\.log"):
            create()
        Timer(0.5, (home / "prefect.db").touch).start()
        create()
    assert (home / "prefect.db").stat().st_size == 0, "the other's"


def test_one_that_is_there_or_somebody_elses_is_left_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect_database, "_MIGRATE", ("json.tool", "--no-such-option"))
    os.environ["PREFECT_API_URL"] = "http://elsewhere/api"
    create_for_flow(lambda: None)
    os.environ[PREFECT_DATABASE] = "postgresql+asyncpg://elsewhere/prefect"
    create()
    assert not home.exists()
    del os.environ[PREFECT_DATABASE]
    home.mkdir()
    (home / "prefect.db").write_bytes(prefect_database.SQLITE_HEAD + b"mine")
    create()
    assert (home / "prefect.db").read_bytes().endswith(b"mine")


@pytest.mark.parametrize("content", [b"garbage", None])
def test_a_file_or_folder_in_its_place_is_a_line_that_names_it(
    home: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    home.mkdir()
    if content is None:
        (home / "prefect.db").mkdir()
    else:
        (home / "prefect.db").write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        create_for_flow(lambda: None)
    assert ended.value.code == exit_codes.USER_ERROR
    assert capsys.readouterr().err == (
        f"PREFECT_HOME: {home}/prefect.db is not an SQLite database; move it away, and a new one is made\n"
    )


def test_a_home_that_is_a_file_is_a_line_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.write_text("")
    with pytest.raises(SystemExit):
        create_for_flow(lambda: None)
    assert f"{home}: cannot be a folder, since {home} is a file" in capsys.readouterr().err


def test_the_secret_of_its_own_server_does_not_make_a_flow_look_for_one_elsewhere(home: Path) -> None:
    secret.apply()
    assert secret.OF_CLIENT in os.environ and not secret.is_elsewhere()
    os.environ[secret.OF_CLIENT] = "of another server"
    assert secret.is_elsewhere()
