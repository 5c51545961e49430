"""Ranks: one function on several processes; no wait for a rank is endless."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from skillpress.core.errors import StorageError
from skillpress.core.waiting import heard
from skillpress.rollouts.workers.ranks import RankError, run_ranks
from tests.support.rollouts import rank_work


@pytest.mark.parametrize("size", [1, 2, 3])
def test_results_come_in_rank_order_and_every_rank_is_told_how_many_there_are(size: int) -> None:
    reports: list[tuple[int, Any]] = []
    found = run_ranks(rank_work.square, size, lambda rank, value: reports.append((rank, value)))
    assert found == [rank * rank for rank in range(size)]
    assert sorted(reports) == [(rank, size) for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2])
def test_the_parent_hears_what_the_first_rank_waits_for(size: int) -> None:
    said: list[str] = []
    with heard(said.append):
        run_ranks(rank_work.wait_for_torch, size)
    starts = ["starting 2 processes", ""] if size == 2 else []
    assert said == [*starts, "importing torch in rank 0", ""]


@pytest.mark.kills
def test_a_rank_that_is_killed_ends_the_others_and_the_error_names_it() -> None:
    before = set(psutil.Process().children())
    with pytest.raises(RankError, match="rank 1 ended with exit code -9"):
        run_ranks(rank_work.die, 2)
    left = set(psutil.Process().children()) - before
    assert not [child for child in left if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.kills
def test_a_rank_that_is_told_to_end_is_named_with_the_signal() -> None:
    with pytest.raises(RankError, match=r"^rank 1 ended with exit code 143 \(SIGTERM\)$"):
        run_ranks(rank_work.be_terminated, 2)


@pytest.mark.kills
def test_where_one_rank_loses_its_connection_to_a_dead_one_the_dead_one_is_named(
    tmp_path: Path,
) -> None:
    with pytest.raises(RankError, match="rank 1 ended with exit code -9") as caught:
        run_ranks(partial(rank_work.lose_the_other, tmp_path), 2)
    assert isinstance(caught.value.__cause__, ConnectionError)


@pytest.mark.kills
def test_an_error_of_a_rank_keeps_its_type_and_says_where_it_was_raised() -> None:
    with pytest.raises(StorageError, match="no space left") as caught:
        run_ranks(rank_work.fill_the_disk, 2)
    assert "In rank 1" in caught.value.__notes__[0] and "fill_the_disk" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_pickled_is_told_in_words() -> None:
    with pytest.raises(RankError, match="StubbornError: no way out"):
        run_ranks(rank_work.raise_unpicklable, 2)


@pytest.mark.kills
def test_ranks_that_all_fall_silent_are_ended() -> None:
    with pytest.raises(RankError, match=r"nothing was heard from rank 0, 1"):
        run_ranks(rank_work.fall_silent, 2, silence_seconds=20)


class StopError(Exception):
    """Represents an interruption in the parent."""


@pytest.mark.kills
def test_ranks_that_are_stopped_early_save_what_they_have(tmp_path: Path) -> None:
    ready: list[int] = []

    def stop_when_all_are_ready(rank: int, value: str) -> None:
        ready.append(rank)
        if len(ready) == 2:
            raise StopError

    with pytest.raises(StopError):
        run_ranks(partial(rank_work.save_when_stopped, tmp_path), 2, stop_when_all_are_ready)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


@pytest.mark.kills
def test_ranks_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from functools import partial; from pathlib import Path\n"
        "from tests.support.rollouts import rank_work\n"
        "from skillpress.rollouts.workers.ranks import run_ranks\n"
        "if __name__ == '__main__':\n"
        "    work = partial(rank_work.wait_for_the_parents_end, Path(sys.argv[1]))\n"
        "    run_ranks(work, 2, lambda rank, value: print(rank, flush=True))\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(program)
    repository = Path(__file__).parents[4]
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE, cwd=repository, env={"PYTHONPATH": str(repository)},
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        for _ in range(2):
            assert parent.stdout.readline()
        parent.kill()
    pids = [int((tmp_path / f"pid-{rank}").read_text()) for rank in range(2)]
    until = time.monotonic() + 30
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(psutil.pid_exists(pid) for pid in pids)
