"""Which Ray cluster trains an experiment: from the command line to the stage.

DVC starts the stages, and the place of training is not part of what is reproduced. So the choice reaches the
stage in an environment variable, not in params.yaml.
"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import asdict, replace

from skillpress.core.arguments import real, whole
from skillpress.core.names import OURS
from skillpress.rollouts.workers.gang import Gang
from skillpress.rollouts.workers.ray_cluster import ClusterError

VARIABLE = "SKILLPRESS_CLUSTER"
"""The variable that holds a gang as JSON."""


def add_cluster_options(parser: ArgumentParser) -> None:
    """Add ``--cluster`` and its options; ``--launch`` adds ``--nodes`` and ``--gpus``."""
    parser.add_argument("--cluster", metavar="HOST:PORT", help="train on a Ray cluster (docs/scaling.md)")
    parser.add_argument(
        "--restarts", type=whole(), default=Gang.restarts, help="with --cluster: after the loss of a process"
    )
    parser.add_argument(
        "--start-timeout", type=real(above=0), default=Gang.start_seconds,
        help="with --cluster: seconds to wait for room there, and for the processes to begin",
    )  # fmt: skip


def name_gang(chosen: Namespace, processes: int) -> None:
    """Let all stages started from now on train on a cluster; ``ClusterError`` if nodes share unevenly."""
    if chosen.nodes < 1 or processes % chosen.nodes:
        raise ClusterError(f"processes: is {processes}, which {chosen.nodes} nodes cannot share evenly")
    gang = Gang(
        address=chosen.cluster,
        nodes=chosen.nodes,
        gpus=chosen.gpus,
        restarts=chosen.restarts,
        start_seconds=chosen.start_timeout,
    )
    os.environ[VARIABLE] = json.dumps(asdict(gang))


def named_gang(code: Iterable[str] = ()) -> Gang | None:
    """The cluster that the environment variable names.

    Args:
        code: the files of a fingerprint; those outside of skillpress must be the same on all machines.
    """
    named = os.environ.get(VARIABLE)
    if named is None:
        return None
    outside = tuple(sorted(name for name in code if not name.startswith(f"{OURS}/")))
    return replace(Gang(**json.loads(named)), code=outside)
