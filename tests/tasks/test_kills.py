"""An experiment that is killed at any moment and started again ends with the bytes of an undisturbed run.

Countdown needs no workers; the tests of the pool check that a killed worker is replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.clone import Clone
from tests.support.kills import Killed, outputs

KILLS = int(os.environ.get("SKILLPRESS_KILLS", "2"))
"""Kills of the run with two ranks; ``make kill-test`` has 50."""
SEED = int(os.environ.get("SKILLPRESS_KILL_SEED", "0"))
CHAIN = 6
"""Kills before a run may finish undisturbed."""
WITHIN = 15.0
"""The most seconds before a run of one rank is killed, about a third of such a run."""


@pytest.mark.slow
@pytest.mark.timeout(840)
def test_killed_twice_and_started_again_it_ends_with_the_bytes_of_an_undisturbed_run(
    repository: Path, reproduced: Clone, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    clone = Clone(repository, tmp_path / "clone")
    killed = Killed(clone, SEED)
    killed.chain(2, WITHIN)
    assert killed.kills.total() == 2, killed.said()
    assert different(outputs(reproduced.folder), outputs(clone.folder)) == set(), killed.said()


@pytest.mark.thorough
@pytest.mark.timeout(600 + 120 * KILLS)
def test_where_every_stage_has_two_ranks_any_of_them_may_be_killed(repository: Path, tmp_path: Path) -> None:
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
        found = different(expected, outputs(clone.folder))
        assert not found, f"{found} after {killed.kills}\n{killed.said()}"
        print(f"{KILLS - left} kills: {dict(killed.kills)}", flush=True)


def different(expected: dict[str, bytes], found: dict[str, bytes]) -> set[str]:
    """Paths whose content is not the same, or that only one of the two has."""
    return {path for path in {*expected, *found} if expected.get(path) != found.get(path)}
