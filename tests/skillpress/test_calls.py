"""How the library calls: a reader sees what each of many arguments is for."""

from __future__ import annotations

import ast
from pathlib import Path

MOST = 5
"""Positional arguments of a call."""


def test_no_call_passes_more_than_five_positional_arguments(repository: Path) -> None:
    found = [
        f"{file.relative_to(repository)}:{call.lineno} passes {len(call.args)}; name them"
        for file in sorted((repository / "skillpress").rglob("*.py"))
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and len(call.args) > MOST
    ]
    assert not found, "\n".join(found)
