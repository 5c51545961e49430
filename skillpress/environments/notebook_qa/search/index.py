"""The index of a corpus: made once from its file, and found again by a hash of the file.

A corpus has one row per paragraph with ``id``, ``title`` and ``text``. It is a Parquet file, or JSON lines
with ``id`` and ``contents``: the title in the first line, then the text. The name of its index folder is
a hash of the file's contents, of this module's ``INDEX_VERSION``, and of tantivy's version. So an existing
folder is complete and up to date. If two processes make it at the same time, the second finds the first one's
result. A single thread writes it, so that paragraphs are in the corpus' order.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

import polars as pl
import tantivy

from skillpress.core.storage import directory_made_once
from skillpress.environments.notebook_qa.search.backend import SearchError
from skillpress.environments.notebook_qa.search.texts import LONGEST_TITLE, title_key
from skillpress.environments.notebook_qa.search.words import text_analyzer

INDEX_VERSION = 1
"""Increase it with every change of the contents of an index."""
CORPUS_COLUMNS = ("id", "title", "text")
ANALYZER = "words"
"""The schema's name for ``words.text_analyzer``."""

_WRITER_BYTES = 256_000_000
"""Memory of the writer. A corpus of some hundred thousand paragraphs becomes a few segments of the index."""


def index_of(paragraphs: str | Path, home: str | Path) -> Path:
    """Return the folder in ``home`` with the index of a corpus; make the index if it does not exist.

    Raises:
        SearchError: the corpus is missing, unreadable, empty, lacks a column or a value, or has a title that
            is too long.
        StorageError: there is no room.
    """
    corpus = Path(paragraphs)
    if not corpus.is_file():
        raise SearchError(
            f"{corpus}: no such file; name the Parquet or .jsonl file with the corpus' paragraphs"
        )
    folder = Path(home) / f"paragraphs-{_digest(corpus)}"
    if not folder.is_dir():
        rows = read_corpus(corpus)
        with directory_made_once(folder) as temporary:
            _write(rows, temporary)
    return folder


def read_corpus(corpus: Path) -> pl.DataFrame:
    """Return the paragraphs with columns ``id``, ``title`` and ``text``.

    Raises:
        SearchError: see :func:`index_of`.
    """
    lines = corpus.suffix == ".jsonl"
    try:
        found = pl.scan_ndjson(corpus) if lines else pl.scan_parquet(corpus)
        columns = found.collect_schema()
        lacking = [
            name for name in (("contents",) if lines else CORPUS_COLUMNS) if columns.get(name) != pl.String
        ]
        if lacking:
            raise SearchError(f"{corpus}: lacks the text columns {', '.join(lacking)}; has {dict(columns)}")
        rows = (_of_lines(found) if lines else found).select(CORPUS_COLUMNS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SearchError(
            f"{corpus}: not a readable {'file of JSON lines' if lines else 'Parquet file'} ({error})"
        ) from error
    if rows.is_empty():
        raise SearchError(f"{corpus}: holds no paragraphs")
    for name in CORPUS_COLUMNS:
        if rows[name].null_count():
            raise SearchError(f"{corpus}: {name} is empty in row {rows[name].is_null().arg_max()}")
    too_long = rows["title"].str.len_chars() > LONGEST_TITLE
    if too_long.any():
        raise SearchError(
            f"{corpus}: the title in row {too_long.arg_max()} has more than {LONGEST_TITLE} characters; "
            "shorten it"
        )
    return rows


def _of_lines(rows: pl.LazyFrame) -> pl.LazyFrame:
    """``id``, ``title`` and ``text`` from ``id`` and ``contents``."""
    parts = pl.col("contents").str.splitn("\n", 2)
    return rows.select(
        pl.col("id").cast(pl.String),
        title=parts.struct.field("field_0"),
        text=parts.struct.field("field_1").fill_null(""),
    )


def schema() -> tantivy.Schema:
    """The fields of a paragraph in an index: ``words`` are searched, ``title_key`` is looked up, ``title``,
    ``text`` and ``id`` (UTF-8) are returned, and ``number`` is the row of the corpus."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("words", tokenizer_name=ANALYZER)
    builder.add_text_field("title_key", tokenizer_name="raw", index_option="basic")
    for name in CORPUS_COLUMNS:
        builder.add_bytes_field(name, stored=True)
    builder.add_integer_field("number", stored=True)
    return builder.build()


def _write(rows: pl.DataFrame, folder: Path) -> None:
    index = tantivy.Index(schema(), path=str(folder))
    index.register_tokenizer(ANALYZER, text_analyzer())
    writer = index.writer(_WRITER_BYTES, 1)
    for number, (paragraph_id, title, text) in enumerate(rows.iter_rows()):
        document = tantivy.Document()
        document.add_text("words", f"{title}\n{text}")
        document.add_text("title_key", title_key(title))
        for name, value in zip(CORPUS_COLUMNS, (paragraph_id, title, text), strict=True):
            document.add_bytes(name, value.encode())
        document.add_integer("number", number)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def _digest(corpus: Path) -> str:
    """16 hex digits of everything that determines the index of this corpus."""
    with corpus.open("rb") as opened:
        content = hashlib.file_digest(opened, "blake2b").hexdigest()
    parts = f"{content} {INDEX_VERSION} {version('tantivy')}"
    return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()
