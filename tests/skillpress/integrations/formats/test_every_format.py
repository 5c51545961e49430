"""Laws of every writer: few episodes in memory, and an output that is complete or absent."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.cli.exporting import FORMATS
from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.hugging_face import HELD
from skillpress.integrations.formats.texts import Texts
from tests.support.integrations.playing import episode, failing

HEAVY = {"datasets": pytest.mark.heavy}
"""A format whose writer imports what is slow to import when it is called."""
OUTPUTS = [
    *(pytest.param(name, "out", marks=HEAVY.get(name, ())) for name in FORMATS),
    pytest.param("atif", "out.jsonl"),
]


@pytest.mark.parametrize(("name", "output"), OUTPUTS)
def test_few_episodes_are_in_memory_at_a_time(name: str, output: str, tmp_path: Path, texts: Texts) -> None:
    alive: weakref.WeakValueDictionary[int, Trajectory] = weakref.WeakValueDictionary()
    most = 0

    def episodes() -> Iterator[Trajectory]:
        nonlocal most
        for number in range(4 * HELD):
            made = episode(number)
            alive[number] = made
            yield made
            del made
            most = max(most, len(alive))

    FORMATS[name](tmp_path / output, episodes(), texts)
    gc.collect()
    assert most <= 2 * HELD + 1


@pytest.mark.parametrize(("name", "output"), OUTPUTS)
def test_an_export_that_fails_leaves_nothing(name: str, output: str, tmp_path: Path, texts: Texts) -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        FORMATS[name](tmp_path / output, failing(), texts)
    assert not list(tmp_path.iterdir())
