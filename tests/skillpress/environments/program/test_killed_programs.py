"""Episodes of programs while programs, workers and servers are killed at random."""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from skillpress.rollouts.sandbox.sandbox import check_isolation
from skillpress.rollouts.sandbox.spawner import spawner
from skillpress.rollouts.sandbox.watchdog import watchdog
from tests.support.rollouts import haunted
from tests.support.rollouts.held import held_descriptors

SHARES = {"function": 0.5, "command": 0.3, "isolated": 0.2}
SECONDS = {"function": 0.5, "command": 0.15, "isolated": 0.2}
"""The least time between two kills."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files. Its path is short, since it holds the endpoint's socket."""
    watchdog(), spawner().folder()  # their threads and files last as long as this process
    check_isolation("bubblewrap")
    made = Path(tempfile.mkdtemp(prefix="h-"))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    yield made
    shutil.rmtree(made)


@pytest.mark.kills
@pytest.mark.parametrize(
    "episodes",
    [pytest.param(120, marks=pytest.mark.slow), pytest.param(2000, marks=pytest.mark.thorough)],
)
@pytest.mark.timeout(3000)
def test_no_episode_is_lost_or_counted_twice_and_nothing_is_left(episodes: int, folder: Path) -> None:
    threads, descriptors = set(threading.enumerate()), held_descriptors()
    kills: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    began = time.monotonic()
    with haunted.Servers() as servers:
        for kind, share in SHARES.items():
            wanted = haunted.wanted(kind, round(episodes * share))
            found, killed = haunted.play(kind, wanted, servers, Random(kind), SECONDS[kind])
            kills += killed
            outcomes.update(each.outcome for each in found)
            for request, episode in zip(wanted, found, strict=True):
                assert haunted.drawn(episode) == haunted.undisturbed(request.task, request.seed)
    print(json.dumps({"kills": kills, "outcomes": outcomes, "seconds": time.monotonic() - began}))
    assert outcomes == {"won": episodes}
    assert kills["worker"] and kills["program"] and kills["server"] and not kills["twice"]
    assert not haunted.until_gone(haunted.marked)
    assert not haunted.until_gone(lambda: set(threading.enumerate()) - threads)
    gc.collect()
    assert not list(folder.iterdir())
    assert not held_descriptors() - descriptors
