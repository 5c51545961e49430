"""A log may be stored in many ways; the content of each file decides how it is read, or why it is not."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import UserError
from skillpress.environments.calls.steps import action_of
from skillpress.logs import json_files, tables
from skillpress.logs.fields import Wanted
from skillpress.logs.files import values
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.tables import plain
from skillpress.logs.trace import TracesError, UnreadableTraceError
from tests.support.integrations.trace_records import atif, chat, mlflow_trace

RUN = ("search", "edit", "test")


def read(*paths: Path, most_bad: float = 0.5) -> Log:
    return read_log(paths, NameProjection(), Wanted(), most_bad)


def numbered(count: int) -> list[dict[str, Any]]:
    return [chat(id=f"run-{number}") for number in range(count)]


def as_lines(found: list[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in found)


def as_zip(found: list[Any]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/", b"")
        for number, value in enumerate(found):
            archive.writestr(f"a/{number}.json", json.dumps(value, indent=1))
    return held.getvalue()


def as_table(write: Callable[[pl.DataFrame, io.BytesIO], Any]) -> Callable[[list[Any]], bytes]:
    def written(found: list[Any]) -> bytes:
        held = io.BytesIO()
        rows = [{**value, "messages": json_messages(value)} for value in found]
        write(pl.DataFrame(rows), held)
        return held.getvalue()

    return written


def json_messages(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages with one type per field, as a table needs them."""
    return [
        {**m, "content": m["content"] if isinstance(m["content"], str | None) else "3 passed"}
        for m in value["messages"]
    ]


STORED: dict[str, Callable[[list[Any]], bytes]] = {
    "lines": as_lines,
    "lines after zeros": lambda found: bytes(4096) + as_lines(found) + bytes(4096),
    "lines in UTF-16": lambda found: as_lines(found).decode().encode("utf-16"),
    "one list": lambda found: json.dumps(found).encode(),
    "an indented list": lambda found: json.dumps(found, indent=2).encode(),
    "a list with an item on each line": lambda found: (
        b"[\n" + as_lines(found).replace(b"}\n", b"},\n")[:-2] + b"\n]"
    ),
    "indented documents": lambda found: b"\n".join(json.dumps(v, indent=2).encode() for v in found),
    "documents without a line between": lambda found: b"".join(json.dumps(v).encode() for v in found),
    "traces in an object": lambda found: json.dumps({"traces": found}, indent=1).encode(),
    "a list in each line": lambda found: b"".join(json.dumps([v, v]).encode() + b"\n" for v in found[::2]),
    "gzip": lambda found: gzip.compress(as_lines(found)),
    "gzip of a document": lambda found: gzip.compress(json.dumps(found, indent=1).encode()),
    "zip": as_zip,
    "Parquet": as_table(lambda frame, file: frame.write_parquet(file)),
    "an Arrow file": as_table(lambda frame, file: frame.write_ipc(file)),
    "an Arrow stream": as_table(lambda frame, file: frame.write_ipc_stream(file)),
}  # fmt: skip


@pytest.mark.parametrize("stored", STORED)
def test_however_a_log_is_stored_it_is_read_and_read_again(stored: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(STORED[stored](numbered(6)))
    found = read(tmp_path / "log")
    assert found.skills == [RUN] * 6 and found.bad_lines == 0 and found.good_lines == 6
    again = dict(traces_at(found, Wanted(), [4, 1]))
    names = {1: "run-0", 4: "run-4"} if stored == "a list in each line" else {1: "run-1", 4: "run-4"}
    assert {position: trace.name for position, trace in again.items()} == names
    assert action_of(again[4].steps[0]) == "gcd"


@pytest.mark.heavy
def test_a_dataset_on_disk_is_a_folder_of_tables(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"id": value["id"], "messages": json_messages(value)} for value in numbered(2500)]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path, num_shards=2)
    found = read(tmp_path)
    assert len(found) == 2500 and found.bad_lines == 0, "a shard has several batches"
    assert {Path(passed.file).name for passed in found.passed_over} == {"state.json", "dataset_info.json"}
    assert [trace.name for _, trace in traces_at(found, Wanted(), [2400])] == ["run-2400"]


def test_a_table_is_read_a_few_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH", 2)
    (tmp_path / "log").write_bytes(STORED["Parquet"](numbered(7)))
    found = read(tmp_path / "log")
    assert [trace.place.number for trace in found.traces] == [1, 2, 3, 4, 5, 6, 7]
    assert [trace.name for _, trace in traces_at(found, Wanted(), [5])] == ["run-5"]


def test_a_cell_is_what_json_would_hold() -> None:
    row = {
        "none": None,
        "inside": {"none": None, "list": [None, {"none": None}]},
        "time": datetime(2026, 3, 1, tzinfo=UTC),
        "bytes": b"\xff\x00",
        "reward": Decimal("0.5"),
        "series": pl.Series([1, 2]),
    }
    assert plain(row) == {
        "inside": {"list": [None, {}]},
        "time": "2026-03-01T00:00:00+00:00",
        "bytes": "2 bytes",
        "reward": 0.5,
        "series": [1, 2],
    }


@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_an_inspect_archive_gives_each_sample_as_its_log_would(header: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr(header, json.dumps({"version": 2, "eval": {"model": "small"}}))
        archive.writestr("samples/1_epoch_1.json", json.dumps({"id": 1, "messages": []}))
        archive.writestr("summaries.json", '[{"id": 1}]')
    found = {value.member: value.value for value in values(tmp_path / "log.eval")}
    sample = {
        "version": 2,
        "status": "started",
        "eval": {"model": "small"},
        "samples": [{"id": 1, "messages": []}],
    }
    assert found == {"samples/1_epoch_1.json": sample}


# What breaks off, and what is bad.


def pieces(content: str, tmp_path: Path) -> list[tuple[int, Any]]:
    """(line, value, or None for a bad piece) of a file."""
    (tmp_path / "log").write_text(content)
    return [
        (value.number, None if isinstance(value.value, UnreadableTraceError) else value.value)
        for value in values(tmp_path / "log")
    ]


def test_a_list_that_breaks_off_keeps_its_whole_items(tmp_path: Path) -> None:
    whole = json.dumps([{"a": {"b": [1]}}] * 3, indent=2)
    assert pieces(whole[: whole.rindex("1")], tmp_path) == [
        (2, {"a": {"b": [1]}}),
        (9, {"a": {"b": [1]}}),
        (16, None),
    ]
    assert pieces('[{"a": 1}, {"a": 2}, {"a"', tmp_path) == [(1, {"a": 1}), (1, {"a": 2}), (1, None)]


def test_a_list_without_its_head_keeps_its_whole_items(tmp_path: Path) -> None:
    whole = json.dumps([{"a": {"b": [1]}}] * 3, indent=2)
    found = pieces(whole[whole.index("1") :], tmp_path)
    assert [value for _, value in found] == [None, {"a": {"b": [1]}}, {"a": {"b": [1]}}]


def test_a_broken_document_among_others_is_one_bad_piece_and_nothing_inside_it_is_a_record(
    tmp_path: Path,
) -> None:
    whole = json.dumps(atif(), indent=2)
    broken = "\n".join(whole.splitlines()[:-1])
    (tmp_path / "log").write_text(f"{whole}\n{broken}\n{whole}\n{broken}")
    found = read(tmp_path / "log")
    assert found.skills == [RUN] * 2 and found.bad_lines == 2


@pytest.mark.parametrize("line", ["{'messages': []}", "a line of prose"])
def test_a_long_text_of_something_else_is_never_held_in_memory(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "LARGEST_DOCUMENT", 10)
    monkeypatch.setattr(json_files, "MOST_STRANGE", 50)
    assert [number for number, value in pieces(f"{line}\n" * 60, tmp_path) if value is None] == list(
        range(1, 61)
    )


def test_lines_without_their_head_are_named(tmp_path: Path) -> None:
    text = as_lines(numbered(50))
    (tmp_path / "log").write_bytes(b'"content": "cut"}\n' + text[100:])
    found = read(tmp_path / "log")
    assert len(found) == 49 and [bad.number for bad in found.bad] == [1, 2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"[]", "it is empty"),
        (b"[[[", "line 1: not JSON"),
        (b"[" * 100_000, "line 1: nested too deeply"),
        (b"# Notes\n", "line 1: not JSON"),
        (b"3\n", "it is a int"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\x7fELF\x02\x01", "an executable"),
        (bytes(range(256)) * 4, "binary data"),
        (b"PAR1 and nothing", "the table cannot be read"),
        (b"ARROW1 and nothing", "the table cannot be read"),
        (b"\xff\xff\xff\xff\x10\0\0\0" + bytes(16), "the table cannot be read|it is empty"),
        (b"PK\x03\x04 and nothing", "a zip that cannot be read"),
        (lzma.compress(b"{}"), "compressed with xz, which is not read; decompress it"),
        (bz2.compress(b"{}"), "compressed with bzip2"),
        (gzip.compress(b"{}", mtime=0)[:-9], "breaks off"),
    ],
)
def test_a_named_file_without_a_trace_says_what_it_is(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(content)
    with pytest.raises(TracesError, match=said):
        read(tmp_path / "log.jsonl")


def test_what_lies_beside_logs_is_passed_over_by_name_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(as_lines(numbered(1)))
    sqlite3.connect(tmp_path / "runs.db").execute("create table t (a)").connection.close()
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as archive:
        archive.writestr("one.png", b"\x89PNG\r\n")
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        tar.add(tmp_path / "log", "log")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "log").write_bytes(as_lines(numbered(1)))
    (tmp_path / "again").symlink_to("log")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "round").symlink_to(".", target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    found = read(tmp_path)
    assert len(found) == 1 and found.bad_lines == 0
    assert {Path(passed.file).name: passed.why for passed in found.passed_over} == {
        "runs.db": "a SQLite database",
        "other.parquet": "not a known format; its keys are a",
        "one.png": "a PNG image",
        "all.tar": "a tar archive, which is not read; unpack it",
        "empty.jsonl": "it is empty",
        ".git": "a folder that is not searched",
        "log": f"the same file as {tmp_path / 'again'}",
        "loop": "neither a file nor a folder",
        "pipe": "neither a file nor a folder",
    }


def test_a_member_that_is_not_a_log_is_passed_over_and_a_named_archive_of_such_is_refused(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        archive.writestr("runs/log.jsonl", as_lines([*numbered(2), {"other": 1}]))
        archive.writestr("runs/result.json", '{"reward": 1}')
        archive.writestr("runs/inner.zip", as_zip(numbered(1)))
    found = read(tmp_path / "runs.zip")
    assert found.skills == [RUN] * 2 and found.traces[1].place.member == "runs/log.jsonl"
    assert [(bad.file, bad.number) for bad in found.bad] == [(f"{tmp_path}/runs.zip/runs/log.jsonl", 3)]
    assert [Path(passed.file).name for passed in found.passed_over] == ["result.json", "inner.zip"]
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("result.json", '{"reward": 1}')
    with pytest.raises(
        TracesError, match=r"no trace was found in .*other\.zip: .*result\.json: .*keys are reward"
    ):
        read(tmp_path / "other.zip")


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(as_lines(numbered(2)))
    assert len(read(tmp_path / "log", tmp_path, tmp_path / "log")) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(as_lines(numbered(1)))
    (tmp_path / "secret").write_bytes(as_lines(numbered(1)))
    (tmp_path / "secret").chmod(0)
    assert read(tmp_path).passed_over[0].why == "cannot be read (Permission denied)"
    with pytest.raises(TracesError, match="cannot be read"):
        read(tmp_path / "secret")


def test_a_file_that_changed_is_not_shown_as_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(as_lines(numbered(3)))
    (tmp_path / "other").write_bytes(as_lines(numbered(1)))
    found = read(tmp_path / "log", tmp_path / "other")
    (tmp_path / "log").write_bytes(b"x" * 10_000)
    (tmp_path / "other").unlink()
    assert list(traces_at(found, Wanted(), [0, 2, 3])) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["messages", "role", "content", "tool_calls", "function", "name", "arguments", "info", "data",
             "spans", "trace", "trace_id", "schema_version", "steps", "samples", "id", "response", "choices"]
        ) | st.text(max_size=3),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip
BEGINNINGS = (
    b"", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"PK\x03\x04", b"\x1f\x8b", b"\xff\xfe", b"[",
    b'{"messages": [', b"\xef\xbb\xbf", as_lines([chat()]),
)  # fmt: skip
RECORDS = (chat, atif, mlflow_trace)


def only_user_errors(path: Path) -> None:
    """Read a log; whatever it holds, nothing else may be raised."""
    try:
        found = read_log([path], NameProjection(), Wanted(), 1.0)
        list(traces_at(found, Wanted(), range(len(found))))
    except UserError as error:
        str(error).encode()


@settings(deadline=None, max_examples=150)
@given(lines=st.lists(JSON, min_size=1, max_size=5))
def test_any_json_is_read_or_refused(lines: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    only_user_errors(path)


@settings(deadline=None, max_examples=150)
@given(data=st.data(), value=JSON, make=st.sampled_from(RECORDS))
def test_a_record_with_any_value_in_any_place_is_read_or_refused(
    data: st.DataObject, value: Any, make: Callable[[], Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    record = held = make()
    for _ in range(data.draw(st.integers(0, 5))):
        places = list(held) if isinstance(held, dict) else list(range(len(held)))
        inside = [place for place in places if isinstance(held[place], dict | list) and held[place]]
        if not inside:
            break
        held = held[data.draw(st.sampled_from(inside))]
    place = data.draw(st.sampled_from(list(held) if isinstance(held, dict) else list(range(len(held)))))
    held[place] = value
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_text(json.dumps(record))
    only_user_errors(path)


@settings(deadline=None, max_examples=150)
@given(
    content=st.binary(max_size=400),
    begin=st.sampled_from(BEGINNINGS),
)
def test_any_bytes_are_read_or_refused(
    content: bytes, begin: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_bytes(begin + content)
    only_user_errors(path)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), stored=st.sampled_from(sorted(STORED)))
def test_a_damaged_file_is_read_or_refused(
    data: st.DataObject, stored: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(STORED[stored](numbered(2)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    only_user_errors(path)
