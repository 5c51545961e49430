"""A program that runs as the user ``nobody``, if the tests run as root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

NOBODY = 65534


def opens(folder: Path) -> bool:
    """Whether every user may enter a folder."""
    return not folder.exists() or bool(folder.stat().st_mode & 1)


def said_by_nobody(python: Path, program: str, modules: Sequence[str]) -> list[str]:
    """The lines that a Python program prints as an ordinary user; it imports from the folders ``modules``.
    The test is skipped if that user may not enter one of them, such as a clone in root's home."""
    closed = [part for path in modules for part in (Path(path), *Path(path).parents) if not opens(part)]
    if closed:
        pytest.skip(f"other users may not enter {closed[0]}")
    said = subprocess.run(
        [python, "-c", dedent(program)],
        env={"PYTHONPATH": os.pathsep.join(modules), "PATH": "/usr/bin:/bin"},
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    return said.stdout.splitlines()
