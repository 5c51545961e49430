"""Run one function on N ranks over the nodes of a Ray cluster: either all of them run, or none.

It works like ``run_ranks``, but spreads the ranks evenly over nodes (one actor on each, see
``gang_node.py``). Every rank is a process in this program's working folder, which all machines share, and
reads its rank from the variables that torchrun would set. When any rank is lost, all are ended and all start
again. If the work keeps checkpoints, its result is the same as that of a run without losses.

Ray Train 2.60 was tried in its place. It put three of four ranks on one node, started three times after a
user's mistake, waited for a silent rank without a limit, and named neither a killed rank nor its log.

Every wait has a limit: for room on the cluster, for the ranks to begin, and for any rank to send something.
The message about a loss names the rank, its node and its log.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from skillpress.core.errors import UserError
from skillpress.core.waiting import tell
from skillpress.rollouts.workers import gang_node
from skillpress.rollouts.workers.gang_node import RankHost
from skillpress.rollouts.workers.gang_work import write_work
from skillpress.rollouts.workers.launched import NEIGHBOURS, VARIABLES
from skillpress.rollouts.workers.ranks import SILENCE_SECONDS, RankError, RankMessage, Work, exit_in_words
from skillpress.rollouts.workers.ray_cluster import ClusterError, connected, live_nodes

Result = TypeVar("Result")

LOSS_SECONDS = 15.0
"""How long to look for a dead rank as the cause of an exception. Ray notices a node in 13 s."""
HANDED_OVER = ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "DO_NOT_TRACK")
"""Variables that ranks get from this process. Variables that name places are different on each node."""


@dataclass(frozen=True)
class Gang:
    """Where ranks run, and what happens when one is lost."""

    address: str
    """HOST:PORT of a Ray cluster to which this machine belongs."""
    nodes: int = 1
    """Number of machines over which the ranks are spread evenly."""
    gpus: bool = False
    """Whether each rank has a GPU."""
    restarts: int = 3
    """How often all ranks may start again after a loss."""
    start_seconds: float = 300.0
    """How long to wait for room on the cluster, and then for the ranks to begin."""
    code: tuple[str, ...] = ()
    """Files of the lab and of other packages that the ranks run; all machines must have the same."""


class LostError(RankError):
    """A rank will not finish, so all must start again; the message names it, its node and log."""


def run_gang(
    work: Work[Result],
    size: int,
    gang: Gang,
    logs: Path,
    on_report: Callable[[int, Any], None] = lambda rank, value: None,
    on_loss: Callable[[str], None] = lambda message: None,
    silence_seconds: float = SILENCE_SECONDS,
) -> list[Result]:
    """Return the results of ``work`` on each of ``size`` ranks, in rank order.

    Args:
        size: a multiple of the gang's nodes.
        logs: a folder that all machines see, for the output of the ranks.
        on_report: called with (rank, its report). After a restart it is called again for repeated work.
        on_loss: called with a message about the loss before all ranks start again.
        silence_seconds: how long all ranks may be silent.

    Raises:
        ClusterError: the cluster cannot be used, has no room in time, or a node cannot start ranks.
        LostError: ranks were lost more often than the gang may restart.
        UserError: an error of the user that a rank found; nothing is restarted.
    """
    if gang.nodes < 1 or size % gang.nodes:
        raise ClusterError(f"cluster: {gang.nodes} nodes cannot share {size} processes evenly")
    command = ("skillpress.rollouts.workers.gang_rank", *write_work(work, logs / "work.pickle", gang.code))
    with connected(gang.address):
        for start in range(gang.restarts + 1):
            ranks = [_Rank(number, logs / f"start-{start}-rank-{number}.log") for number in range(size)]
            try:
                with _placed(gang, size // gang.nodes) as hosts:
                    streams = _begin(gang, hosts, ranks, command)
                    _listen(streams, ranks, on_report, (gang.start_seconds, silence_seconds))
                return [rank.result for rank in ranks]
            except LostError as error:
                if start == gang.restarts:
                    error.add_note(f"Given up after {gang.restarts} restarts.")
                    raise
                on_loss(f"{error}; all ranks start again, restart {start + 1} of {gang.restarts}")
    raise AssertionError("the last start returns or raises")


@dataclass
class _Rank:
    """The driver's view of one rank."""

    number: int
    log: Path
    node: str = ""
    begun: bool = False
    done: bool = False
    ended: bool = False
    result: Any = None
    raised: RankMessage | None = None

    def __str__(self) -> str:
        return f"rank {self.number} on node {self.node}"

    def hear(self, said: bytes | int) -> RankMessage | None:
        """Record a message and return it if it is a report.

        Raises:
            LostError: the rank ended before it finished its work.
            UserError: an error of the user that the rank found.
        """
        if isinstance(said, int):
            self.ended = True
            if not (self.done or self.raised):
                raise LostError(f"{self} ended with {exit_in_words(said)}; its log is {self.log}")
            return None
        message: RankMessage = pickle.loads(said)
        self.begun = True
        if message.kind == "done":
            self.done, self.result = True, message.value
        elif message.kind == "raised":
            if isinstance(message.value, UserError):
                raise message.value
            self.raised = message
        elif message.kind == "waits" and self.number == 0:
            tell(message.value)
        return message if message.kind == "report" else None


def _listen(
    streams: dict[Any, list[_Rank]],
    ranks: Sequence[_Rank],
    on_report: Callable[[int, Any], None],
    patience: tuple[float, float],
) -> None:
    """Return when all ranks have finished.

    Args:
        streams: maps Ray's streams of messages to the ranks that send them.
        patience: seconds until all ranks must have begun, and of silence after that.

    Raises:
        LostError: a rank will never finish.
        UserError: an error of the user that a rank or its node found.
    """
    import ray

    heard = time.monotonic()
    first: _Rank | None = None
    while open_ := [stream for stream, own in streams.items() if not all(rank.ended for rank in own)]:
        seconds = LOSS_SECONDS if first else patience[all(rank.begun for rank in ranks)]
        ready, _ = ray.wait(open_, num_returns=1, timeout=max(0.0, heard + seconds - time.monotonic()))
        if not ready and first is None:
            working = [rank for rank in ranks if not rank.ended]
            late = [rank for rank in working if not rank.begun] or working
            raise LostError(f"nothing was heard for {seconds:g} seconds from {_with_logs(late)}")
        if not ready:
            break
        for stream in ready:
            number, said = _heard(stream, streams[stream])
            if report := ranks[number].hear(said):
                on_report(number, report.value)
            if ranks[number].raised:
                first = first or ranks[number]
        if first is None:
            heard = time.monotonic()
    if first is not None:
        raise _lost_by(first)


def _heard(stream: Any, ranks: Sequence[_Rank]) -> tuple[int, bytes | int]:
    import ray

    try:
        heard: tuple[int, bytes | int] = ray.get(next(stream))
    except ray.exceptions.RayActorError as error:
        raise LostError(f"lost with its node or its host process: {_with_logs(ranks)}") from error
    except ray.exceptions.RayTaskError as error:  # such as a node without the folder
        raise ClusterError(f"node {ranks[0].node} cannot start its ranks: {error.cause}") from error
    return heard


def _with_logs(ranks: Sequence[_Rank]) -> str:
    return ", ".join(f"{rank} (log {rank.log})" for rank in ranks)


def _lost_by(rank: _Rank) -> LostError:
    """The error if no rank died: the first rank that raised an exception is the reason."""
    assert rank.raised is not None
    error: Exception = rank.raised.value
    lost = LostError(f"{rank} raised {type(error).__name__}: {error}; its log is {rank.log}")
    lost.add_note(rank.raised.traceback)
    return lost


@contextmanager
def _placed(gang: Gang, each: int) -> Iterator[list[Any]]:
    """An actor on each node, with room for ``each`` ranks, ended with the block; or ``ClusterError``."""
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ray.cloudpickle.register_pickle_by_value(gang_node)  # a node may have another revision, or none
    room = {"CPU": each} | ({"GPU": each} if gang.gpus else {})
    group = placement_group([room] * gang.nodes, strategy="STRICT_SPREAD")
    hosts: list[Any] = []
    try:
        if not group.wait(gang.start_seconds):
            free = " and ".join(f"{amount} free {kind}" for kind, amount in room.items())
            raise ClusterError(
                f"cluster: no room on {gang.address} after {gang.start_seconds:g} seconds: {gang.nodes} "
                f"nodes with {free} each are needed; alive are {', '.join(live_nodes().values())}"
            )
        host = ray.remote(num_cpus=each, num_gpus=room.get("GPU", 0))(RankHost)
        for bundle in range(gang.nodes):
            place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
            hosts.append(host.options(scheduling_strategy=place).remote())
        yield hosts
    finally:
        for actor in hosts:
            ray.kill(actor)
        remove_placement_group(group)


def _begin(
    gang: Gang, hosts: Sequence[Any], ranks: Sequence[_Rank], command: tuple[str, ...]
) -> dict[Any, list[_Rank]]:
    """Start every rank; Ray's streams of messages to the ranks that send them, or ``LostError``."""
    import ray

    try:
        places = ray.get([host.place.remote() for host in hosts], timeout=gang.start_seconds)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
        there = ", ".join(live_nodes().values())
        raise LostError(f"a node was lost before its ranks began; alive are {there}") from error
    nodes, each, streams = live_nodes(), len(ranks) // gang.nodes, {}
    for number, (host, (node, _, _)) in enumerate(zip(hosts, places, strict=True)):
        own, starts = list(ranks[number * each : (number + 1) * each]), []
        for local, rank in enumerate(own):
            rank.node = nodes.get(node, node)
            variables = _variables(rank.number, local, len(ranks), each, places[0])
            starts.append((rank.number, str(rank.log), variables))
        streams[host.run.options(num_returns="streaming").remote(str(Path.cwd()), command, starts)] = own
    return streams


def _variables(rank: int, local: int, size: int, each: int, meeting: tuple[str, str, int]) -> dict[str, str]:
    """The environment of a rank: the variables of a launcher, and this process's settings."""
    _, address, port = meeting
    values = map(str, (rank, local, size, address, port))
    handed = {name: os.environ[name] for name in HANDED_OVER if name in os.environ}
    return {**handed, **dict(zip(VARIABLES, values, strict=True)), NEIGHBOURS: str(each)}
