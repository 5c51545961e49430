"""An experiment that is killed at any moment and started again ends with the bytes of an undisturbed run.

``make kill-test`` kills 50 times; this test kills twice. Every stage that plays or trains has two ranks.
Countdown needs no workers; the tests of the pool check that a killed worker is replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.clone import Clone
from tests.support.kills import Killed, outputs

KILLS = int(os.environ.get("SKILLPRESS_KILLS", "2"))
SEED = int(os.environ.get("SKILLPRESS_KILL_SEED", "0"))
CHAIN = 6
"""Kills before a run may finish undisturbed."""


@pytest.mark.slow
@pytest.mark.timeout(600 + 120 * KILLS)
def test_killed_anywhere_and_started_again_it_ends_with_the_bytes_of_an_undisturbed_run(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    clone = Clone(repository, tmp_path / "clone")
    clone.set_params({"processes": 2})
    killed = Killed(clone, SEED)
    seconds = killed.undisturbed()
    expected = outputs(clone.folder)
    left = KILLS
    while left > 0:
        killed.wipe()
        before = sum(killed.kills.values())
        killed.chain(min(CHAIN, left), seconds / 3)
        left -= sum(killed.kills.values()) - before
        found = outputs(clone.folder)
        different = {path for path in {*expected, *found} if expected.get(path) != found.get(path)}
        assert not different, f"{killed.kills}\n{killed.said()}"
        print(f"{KILLS - left} kills: {dict(killed.kills)}", flush=True)
