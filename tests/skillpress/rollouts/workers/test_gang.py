"""Ranks over a cluster, as far as they can be tested without one: the work of a node, and what is refused.

``experiment/test_launched_training.py`` tests two nodes and the loss of either.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from skillpress.rollouts.workers.gang import Gang, LostError, _Rank, run_gang
from skillpress.rollouts.workers.gang_node import RankHost
from skillpress.rollouts.workers.gang_work import ForeignNodeError, read_work, source_key, write_work
from skillpress.rollouts.workers.ranks import RankMessage, free_port
from skillpress.rollouts.workers.ray_cluster import ClusterError, connected
from tests.support.programs import ROOT
from tests.support.rollouts import rank_work


@pytest.fixture
def work(tmp_path: Path) -> tuple[Path, str]:
    """A file of work and its hash."""
    file, digest, *_ = write_work(rank_work.square, tmp_path / "work.pickle")
    return Path(file), digest


def heard(work: tuple[Path, str], rank: int, source: str) -> list[RankMessage | int]:
    """The messages of one rank that a node forwards."""
    variables = {"PYTHONPATH": str(ROOT), "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "4"}
    variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    command = ("skillpress.rollouts.workers.gang_rank", str(work[0]), work[1], source)
    said = RankHost().run(str(work[0].parent), command, [(rank, "logs/rank.log", variables)])
    return [each if isinstance(each, int) else pickle.loads(each) for _, each in said]


def test_a_node_hands_on_what_its_rank_says_and_how_it_ended(work: tuple[Path, str]) -> None:
    messages = heard(work, 3, source_key())
    assert messages == [RankMessage("begun"), RankMessage("report", 4), RankMessage("done", 9), 0]
    assert (work[0].parent / "logs" / "rank.log").exists()


def test_a_rank_with_other_code_than_its_starter_refuses(work: tuple[Path, str]) -> None:
    refusal, code = heard(work, 3, "another")
    assert code == 0 and isinstance(refusal, RankMessage)
    assert isinstance(refusal.value, ForeignNodeError)
    assert f"holds other code ({source_key()}) than the program that started" in str(refusal.value)


def test_a_rank_with_another_file_of_the_lab_or_of_a_package_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab" / "my_lab").mkdir(parents=True)
    (tmp_path / "site" / "theirs").mkdir(parents=True)
    method, package = tmp_path / "lab" / "my_lab" / "method.py", tmp_path / "site" / "theirs" / "__init__.py"
    method.write_text("A = 1\n")
    package.write_text("B = 1\n")
    monkeypatch.chdir(tmp_path / "lab")
    monkeypatch.syspath_prepend(tmp_path / "site")
    code = ("my_lab/method.py", "theirs/__init__.py")
    file, digest, source, *named = write_work(rank_work.square, tmp_path / "work.pickle", code)
    assert tuple(named) == code and source != source_key()
    assert read_work(Path(file), digest, source, code)
    for edited in (method, package):
        before = edited.read_text()
        edited.write_text("A = 2\n")
        with pytest.raises(ForeignNodeError, match=r"or one of my_lab/method\.py, theirs/__init__\.py,"):
            read_work(Path(file), digest, source, code)
        edited.write_text(before)
    package.unlink()
    with pytest.raises(ForeignNodeError, match=r"theirs/__init__\.py, which the experiment runs, is"):
        read_work(Path(file), digest, source, code)


def test_a_rank_that_does_not_see_its_starters_disk_refuses(work: tuple[Path, str]) -> None:
    file, digest = work
    with pytest.raises(ForeignNodeError, match="must share the folder"):
        read_work(file.with_name("elsewhere"), digest, source_key())
    file.write_bytes(b"another machine's")
    with pytest.raises(ForeignNodeError, match="must share the folder"):
        read_work(file, digest, source_key())


def test_a_rank_that_ends_before_its_work_is_lost_by_name_node_and_log() -> None:
    rank = _Rank(1, Path("logs/rank-1.log"), node="left (1 CPU)")
    with pytest.raises(
        LostError, match=r"rank 1 on node left \(1 CPU\) ended with exit code -9 \(SIGKILL\); its log is"
    ):
        rank.hear(-9)


def test_a_rank_that_is_done_may_end() -> None:
    rank = _Rank(1, Path("logs/rank-1.log"))
    rank.hear(pickle.dumps(RankMessage("done", 5)))
    rank.hear(0)
    assert rank.ended and rank.result == 5


def test_an_address_that_is_none_is_refused_and_so_is_one_where_nobody_answers() -> None:
    for address in ("auto", "ray://node0:10001", "node0"):
        with pytest.raises(ClusterError, match="is not HOST:PORT"), connected(address):
            pass
    with pytest.raises(ClusterError, match="no cluster answers at"), connected(f"127.0.0.1:{free_port()}"):
        pass


def test_nodes_that_cannot_share_the_ranks_evenly_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="2 nodes cannot share 3 processes evenly"):
        run_gang(rank_work.square, 3, Gang("node0:6379", nodes=2), tmp_path)
    assert not list(tmp_path.iterdir())
