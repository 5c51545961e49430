"""Stages are short files. The library does their work."""

from __future__ import annotations

from pathlib import Path

MOST_LINES = 80


def test_every_stage_is_short(repository: Path) -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (repository / "tasks").glob("*.py")}
    assert "train_policy.py" in lines
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
