"""The example of docs/question_answering.md, run on a corpus of two paragraphs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from docs.build.markdown import blocks
from tests.support.pages import ROOT


def test_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "question_answering.md").read_text()
    (search,) = (block.code for block in blocks(page) if block.language == "python")
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "id": ["0", "1"],
            "title": ["Charles Babbage", "Ada Lovelace"],
            "text": ["He designed the Analytical Engine.", "She wrote a program for it."],
        }
    ).write_parquet("paragraphs.parquet")
    names: dict[str, object] = {}
    exec(search, names)
    assert capsys.readouterr().out == "Charles Babbage He designed the Analytical Engine.\n"
    assert names["page"] is not None
