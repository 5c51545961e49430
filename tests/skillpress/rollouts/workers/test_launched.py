"""Ranks of a launcher: their numbers, and the message if one is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from skillpress.rollouts.workers.launched import Launch, LaunchError, launch_of_environment, take_part
from skillpress.rollouts.workers.ranks import RankError, free_port
from tests.support.programs import PROGRAMS, importing

PROGRAM = PROGRAMS / "launched_program.py"
TORCHRUN = {
    "RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "node0", "MASTER_PORT": "29500",
}  # fmt: skip


def test_a_rank_knows_its_place_from_its_launchers_variables() -> None:
    assert launch_of_environment(TORCHRUN) == Launch(rank=5, size=8, local_rank=1, local_size=4)
    others = {name: value for name, value in TORCHRUN.items() if name != "LOCAL_WORLD_SIZE"}
    assert launch_of_environment(others) == Launch(rank=5, size=8, local_rank=1, local_size=8)


def test_without_a_launcher_there_is_nothing_to_know() -> None:
    assert launch_of_environment({}) is None
    assert launch_of_environment({"MASTER_PORT": "29500", "LOCAL_RANK": "0"}) is None


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(LaunchError, match=f"{name} is not set"):
        launch_of_environment({key: value for key, value in TORCHRUN.items() if key != name})


def test_a_variable_that_is_no_number_is_refused() -> None:
    with pytest.raises(LaunchError, match=r"not a number: .*'five'"):
        launch_of_environment({**TORCHRUN, "RANK": "five"})


def test_another_number_of_ranks_than_the_experiments_is_refused() -> None:
    with pytest.raises(LaunchError, match=r"processes is 2, but the launcher started 8 ranks"):
        take_part(lambda *_: None, Launch(5, 8, 1, 4), 2, lambda value: None)


def test_only_rank_0_reports_and_an_error_of_its_own_stays_as_it_is() -> None:
    told: list[int] = []
    for rank in (0, 1):
        take_part(lambda rank, size, report: report(rank), Launch(rank, 2, rank, 2), 2, told.append)
    assert told == [0]

    def fail(rank: int, size: int, report: object) -> None:
        raise RuntimeError("of this rank alone")

    with pytest.raises(RuntimeError, match="of this rank alone") as caught:
        take_part(fail, Launch(0, 2, 0, 2), 2, told.append)
    assert not isinstance(caught.value, RankError)


@pytest.mark.kills
@pytest.mark.parametrize(
    "lost", [pytest.param(0, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.slow)]
)
def test_a_rank_that_is_killed_ends_the_other_which_names_it(lost: int, tmp_path: Path) -> None:
    port = str(free_port())
    ranks = [start(rank, port, tmp_path) for rank in (0, 1)]
    try:
        until = time.monotonic() + 300
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        ranks[lost].kill()
        _, said = ranks[1 - lost].communicate(timeout=120)
        assert ranks[1 - lost].returncode == 1
        assert f"RankError: rank {1 - lost} stopped: rank {lost} does not answer" in said
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def start(rank: int, port: str, folder: Path) -> subprocess.Popen[str]:
    """Start a rank as srun does, with the variables that our template sets."""
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder)],
        stderr=subprocess.PIPE, text=True, env={**importing(), **own, **where},
    )  # fmt: skip
