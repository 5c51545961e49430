"""Keys and parts of unfinished work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core.resume import ResumeStore, SaveTimer, content_key


def test_a_key_follows_values_and_the_content_of_files_and_folders(tmp_path: Path) -> None:
    tasks, model = tmp_path / "tasks", tmp_path / "model"
    tasks.write_text("one")
    model.mkdir()
    (model / "weights").write_text("1 2")
    first = content_key({"seed": 0, "a": 1}, [tasks, model])
    assert content_key({"a": 1, "seed": 0}, [tasks, model]) == first
    found = {first, content_key({"seed": 1, "a": 1}, [tasks, model])}
    tasks.write_text("two")
    found.add(content_key({"seed": 0, "a": 1}, [tasks, model]))
    (model / "weights").write_text("1 3")
    found.add(content_key({"seed": 0, "a": 1}, [tasks, model]))
    assert len(found) == 4


def test_parts_come_in_the_order_of_their_numbers_and_kinds_apart(tmp_path: Path) -> None:
    store = ResumeStore(tmp_path, "key")
    assert store.parts("a") == []
    store.folder.mkdir()
    for kind, number in (("a", 100), ("b", 1), ("a", 20)):
        store.part(kind, number).touch()
    assert store.parts("a") == [(20, store.part("a", 20)), (100, store.part("a", 100))]
    store.clear()
    store.clear()
    assert not store.folder.exists()


def test_the_clock_strikes_once_in_its_time() -> None:
    assert not SaveTimer(1e9)()
    always = SaveTimer(0.0)
    assert always() and always()


def test_saves_that_take_long_wait_for_twenty_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("skillpress.core.resume.time.monotonic", lambda: now)
    timer = SaveTimer(30.0)
    now = 30.0
    assert timer()
    with timer.measured():
        now += 10.0
    now += 199.0
    assert not timer()
    now += 1.0
    assert timer()


def test_a_chain_of_spans_ends_at_its_first_gap(tmp_path: Path) -> None:
    store = ResumeStore(tmp_path, "key")
    assert store.spans("a") == []
    store.folder.mkdir()
    for first, last in ((1, 30), (31, 40), (51, 60), (61, 99)):
        store.span("a", first, last).touch()
    store.span("b", 41, 50).touch()
    assert store.spans("a") == [(30, store.span("a", 1, 30)), (40, store.span("a", 31, 40))]
    store.span("a", 41, 50).touch()
    assert [last for last, _ in store.spans("a")] == [30, 40, 50, 60, 99]
    store.span("a", 1, 30).unlink()
    assert store.spans("a") == []


CLEAR = """
import shutil, sys
from skillpress.core.resume import ResumeStore
def stuck(folder, ignore_errors):
    next(folder.glob("a-*")).unlink()
    print("one is gone", flush=True)
    sys.stdin.read()
shutil.rmtree = stuck
ResumeStore(sys.argv[1], "key").clear()
"""


@pytest.mark.kills
def test_a_process_killed_while_clearing_leaves_nothing_to_be_found_and_the_next_sweeps_it_up(
    tmp_path: Path, repository: Path
) -> None:
    store = ResumeStore(tmp_path, "key")
    store.folder.mkdir()
    for number in range(5):
        store.part("a", number).touch()
    (tmp_path / "another").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", CLEAR, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(repository)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as killed:  # fmt: skip
        assert killed.stdout is not None
        assert killed.stdout.readline() == "one is gone\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert store.parts("a") == []
    assert len(list(tmp_path.iterdir())) == 2, "the half-cleared folder lies under another name"
    store.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["another"]
