"""An ablation over the nodes of a Ray cluster, each of which has its own checkout, cache and disk.

A node gets one command at a time (``on_node.py``) and returns a dvc.lock. The results themselves go through a
DVC remote, and the runs' records to the MLflow server named by MLFLOW_TRACKING_URI. Ray only finds a node
with free cores and notices if it is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from flows import on_node
from flows.on_node import NodeOutcome, reproduce_here
from skillpress.pipeline.reproduce.remote import RevisionError
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.revision import revision
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.runs import PARENT_VARIABLE
from skillpress.rollouts.workers.ray_cluster import ClusterError, connected, live_nodes

if TYPE_CHECKING:
    import ray

LIMIT_SECONDS = 24 * 3600.0
"""The time limit of an experiment on a node, including its wait for free cores."""
ROOM_SECONDS = 300.0
"""How long an experiment waits while no living node has enough cores, even when idle."""
LOOK_SECONDS = 5.0
"""Seconds between looks at the nodes."""
_TRACKING = "MLFLOW_TRACKING_URI"


class MachineLostError(RuntimeError):
    """A node was lost, or did not answer in time; the message names the experiment."""


@dataclass(frozen=True)
class AblationMachines:
    """Where the experiments of an ablation run, and what they share."""

    address: str
    """HOST:PORT of a Ray cluster that this machine is a node of."""
    remote: str
    """The DVC remote: a URL, or a folder that all machines see."""
    limit_seconds: float = LIMIT_SECONDS

    @contextmanager
    def joined(self, processes: int) -> Iterator[int]:
        """Use the cluster within the block; yields how many experiments with so many processes fit.

        Raises:
            ClusterError: the cluster cannot be used, or no node has so many cores.
            RevisionError: this checkout has changes that no other machine can check out.
        """
        here = revision()
        if here == "unknown" or here.endswith("-dirty"):
            raise RevisionError(f"this checkout is at {here}: commit first, other machines run that commit")
        with connected(self.address):
            import ray

            ray.cloudpickle.register_pickle_by_value(on_node)  # nodes may have another revision
            if not (found := room(processes)):
                raise ClusterError(f"cluster: no node has {processes} CPUs; alive are {_alive()}")
            yield found

    def run(self, variant: Variant, processes: int) -> NodeOutcome:
        """Reproduce a variant on some node, as :func:`reproduce_here` says.

        Raises:
            MachineLostError: its node was lost, the time is up, or no living node has enough cores.
        """
        import ray

        options = [*self.options(variant), "--revision", revision()]
        # A server's address is valid everywhere; a file exists on the head only.
        tracking = os.environ[_TRACKING]
        shared = (_TRACKING, PARENT_VARIABLE) if tracking.startswith("http") else ()
        variables = {name: os.environ[name] for name in shared if name in os.environ}
        task = ray.remote(num_cpus=processes, max_retries=0)(reproduce_here)
        running = task.remote(variant.name, options, variables)
        try:
            self._wait(running, processes)
            outcome: NodeOutcome = ray.get(running)
        except (ray.exceptions.RayError, TimeoutError) as error:
            ray.cancel(running, force=True)
            reason = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
            what = str(error) if isinstance(error, TimeoutError) else f"lost ({reason})"
            raise MachineLostError(
                f"{variant.name} on another machine: {what}; alive are {_alive()}"
            ) from error
        return outcome

    def _wait(self, running: ray.ObjectRef[NodeOutcome], processes: int) -> None:
        """Return when the experiment has ended or its node is lost."""
        import ray

        ends = time.monotonic() + self.limit_seconds
        roomless = time.monotonic() + ROOM_SECONDS
        while not ray.wait([running], timeout=min(LOOK_SECONDS, self.limit_seconds))[0]:
            now = time.monotonic()
            if now > ends:
                raise TimeoutError(f"no answer after {self.limit_seconds:g} seconds")
            if room(processes):
                roomless = now + ROOM_SECONDS
            elif now > roomless:
                raise TimeoutError(f"no node has had {processes} CPUs for {ROOM_SECONDS:g} seconds")

    def options(self, variant: Variant) -> list[str]:
        """Options of ``skillpress.pipeline.reproduce``, the same on every machine."""
        portable = replace(variant, overlays=tuple(map(_portable, variant.overlays)))
        return [*portable.options, "--remote", self.remote]


def room(processes: int) -> int:
    """How many experiments with so many processes fit on the cluster's living nodes when these are idle."""
    import ray

    cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    return sum(each // processes for each in cores)


def _alive() -> str:
    return ", ".join(live_nodes().values())


def _portable(overlay: Path) -> Path:
    """The path of an overlay in every checkout."""
    place = overlay.resolve()
    if not place.is_relative_to(ROOT):
        raise ClusterError(f"{overlay}: other machines have only what is committed in this repository")
    return place.relative_to(ROOT)
