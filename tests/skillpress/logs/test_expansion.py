"""A file that is made to fill a memory is refused before it does; a log that compresses well is read."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

from skillpress.logs import expansion, table_sizes
from skillpress.logs.files import values
from skillpress.logs.trace import UnreadableTraceError
from tests.support.integrations.trace_records import chat

MIB = 1 << 20
LINE = json.dumps(chat()).encode() + b"\n"


def zeros(count: int) -> bytes:
    """``count`` zero bytes in gzip, made piece by piece."""
    held = io.BytesIO()
    with gzip.GzipFile(fileobj=held, mode="wb", mtime=0) as file:
        for _ in range(count >> 20):
            file.write(bytes(1 << 20))
    return held.getvalue()


def honest_first() -> bytes:
    """A trace, then zeros; the size at its end is a lie."""
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(LINE)
    for _ in range(100):
        packed += packer.compress(bytes(1 << 20))
    return (packed + packer.flush())[:-4] + struct.pack("<I", 100)


def one_line() -> bytes:
    """One line of a long text, in gzip."""
    return gzip.compress(b'{"messages": "' + b"a" * 100 * MIB + b'"}', 1, mtime=0)


def quine() -> bytes:
    """A gzip file in a gzip file, and so on."""
    found = LINE
    for _ in range(40):
        found = gzip.compress(found, mtime=0)
    return found


def zipped(*members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            archive.writestr(f"{number}.jsonl", member)
    return held.getvalue()


def lying_zip() -> bytes:
    """A member that says it has 100 bytes."""
    packed = bytearray(zipped(bytes(64 << 20)))
    size = struct.pack("<I", 64 << 20)
    while (at := packed.find(size)) >= 0:
        packed[at : at + 4] = struct.pack("<I", 100)
    return bytes(packed)


def parquet(frame: pl.DataFrame) -> bytes:
    held = io.BytesIO()
    frame.write_parquet(held, compression="zstd")
    return held.getvalue()


def constant_rows() -> bytes:
    return parquet(pl.select(pl.repeat(0, 200_000_000, dtype=pl.Int64).alias("number")))


def one_text_in_all_rows() -> bytes:
    """A text of a million characters is stored once, for a hundred thousand rows."""
    text = pl.Series("text", ["a" * 1_000_000], dtype=pl.Categorical)
    return parquet(pl.DataFrame({"text": text.new_from_index(0, 100_000)}))


def arrow(stream: bool) -> bytes:
    held = io.BytesIO()
    frame = pl.DataFrame({"text": ["a" * (64 << 20)]})
    (frame.write_ipc_stream if stream else frame.write_ipc)(held, compression="zstd")
    return held.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: zeros(256 * MIB),
    "gzip behind a trace": honest_first,
    "gzip of one line": one_line,
    "gzip in gzip": lambda: gzip.compress(zeros(256 * MIB), mtime=0),
    "gzip forty times": quine,
    "zip": lambda: zipped(bytes(256 << 20)),
    "zip of many": lambda: zipped(*[bytes(8 << 20)] * 40),
    "zip of gzip": lambda: zipped(zeros(256 * MIB)),
    "Parquet of one value": constant_rows,
    "Parquet of one text": one_text_in_all_rows,
    "Arrow file": lambda: arrow(stream=False),
    "Arrow stream": lambda: arrow(stream=True),
}
READ = """
    import resource, sys
    from skillpress.logs.files import values
    from pathlib import Path
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    said = [str(value.value) for value in values(Path(sys.argv[1])) if isinstance(value.value, Exception)]
    (peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(int(peak) >> 10, *said, sep="\\n")
"""


@pytest.mark.heavy
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(BOMBS[kind]())
    assert (tmp_path / "log").stat().st_size < 4 << 20
    done = subprocess.run(
        [sys.executable, "-c", dedent(READ), str(tmp_path / "log")],
        capture_output=True,
        text=True,
        check=True,
    )
    memory, *said = done.stdout.splitlines()
    assert any("expands from" in each or "compressed 3 times" in each for each in said), said
    assert int(memory) < 400, f"{memory} megabytes"


def test_a_zip_that_lies_about_a_member_gives_no_more_than_it_says(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(lying_zip())
    (found,) = values(tmp_path / "log")
    assert isinstance(found.value, UnreadableTraceError)


def test_a_zip_with_too_many_members_is_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpress.logs.archives.LARGEST_DIRECTORY", 1000)
    (tmp_path / "log").write_bytes(zipped(*[LINE] * 30))
    (found,) = values(tmp_path / "log")
    assert "its list of members has" in str(found.value)


def test_a_log_that_repeats_itself_is_read(tmp_path: Path) -> None:
    """Every line holds the conversation before it, as the requests of an agent do."""
    said = [{"role": "user", "content": f"{number} " + "word " * 40} for number in range(60)]
    lines = [json.dumps({"messages": said[: count % 60 + 1]}).encode() for count in range(4000)]
    packed = gzip.compress(b"\n".join(lines), mtime=0)
    assert len(b"\n".join(lines)) > expansion.FREE
    (tmp_path / "log").write_bytes(packed)
    assert sum(isinstance(each.value, dict) for each in values(tmp_path / "log")) == len(lines)


def test_a_gzip_file_that_was_cut_is_read_up_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(LINE * 5000, mtime=0)[:-30] + b"\xff" * 4)
    found = [each.value for each in values(tmp_path / "log")]
    assert len(found) > 1000 and "breaks off" in str(found[-1])


@pytest.mark.parametrize("compression", ["zstd", "uncompressed"])
def test_what_a_table_says_of_its_size_is_what_it_holds(compression: str) -> None:
    frame = pl.DataFrame({"text": [f"{number:0100}" for number in range(5000)], "number": range(5000)})
    for write, size in (
        (frame.write_parquet, table_sizes.parquet_bytes),
        (frame.write_ipc_stream, table_sizes.arrow_bytes),
        (frame.write_ipc, table_sizes.arrow_bytes),
    ):
        held = io.BytesIO()
        write(held, compression=compression)  # type: ignore[operator]
        held.seek(0)
        assert 500_000 < size(held) < 800_000


def footer(*fields: bytes) -> bytes:
    """A Parquet file that has only a footer."""
    described = b"".join(fields) + b"\0"
    return b"PAR1" + described + struct.pack("<I", len(described)) + b"PAR1"


def group(values: bytes, size: bytes) -> bytes:
    """The field of one group of rows with one column, in Thrift's compact protocol."""
    column = b"\x3c" + b"\x56" + values + b"\x16" + size + b"\0\0"
    return b"\x49\x1c" + b"\x19\x1c" + column + b"\0"


@pytest.mark.parametrize(
    "wrong",
    [
        footer(group(b"\x13", b"\x02")),  # -10 values
        footer(group(b"\x80" * 40 + b"\x01", b"\x02")),
        footer(b"\x1b" + b"\x01\x88" + b"\x02\x02", group(b"\x02", b"\x02")),  # a mapping
        footer(b"\x49" + b"\x19" * 5000),
        footer(),
    ],
)
def test_a_footer_that_is_not_understood_is_not_given_to_the_reader(wrong: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(wrong)
    (found,) = values(tmp_path / "log")
    assert "the table cannot be read (its description" in str(found.value)


def test_a_footer_by_hand_is_understood() -> None:
    held = io.BytesIO(footer(group(b"\x0a", b"\xc8\x01")))  # 5 values, 100 bytes
    assert table_sizes.parquet_bytes(held) == 100
