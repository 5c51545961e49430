"""Logs made of a few lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection, TraceProjection

ReadLines = Callable[..., Log]


@pytest.fixture
def read_lines(tmp_path: Path) -> ReadLines:
    """``read_lines(line, ...)``: the log of a file with these lines; lines that are not text are written as
    JSON."""

    def read(
        *lines: Any,
        projection: TraceProjection | None = None,
        wanted: Wanted | None = None,
        most_bad: float = 0.5,
        name: str = "log.jsonl",
    ) -> Log:
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return read_log([tmp_path / name], projection or NameProjection(), wanted or Wanted(), most_bad)

    return read
