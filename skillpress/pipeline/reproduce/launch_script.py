"""Scripts for a cluster's scheduler, or for one machine without any, that run an experiment.

    skillpress run --dry-run --launch slurm --nodes 2 --gpus --params ... > job.sh

fills in a template of infra/launch and prints it; nothing is submitted. docs/scaling.md says how the ranks
find each other and what else runs where.

If the engine's servers have addresses of this machine (``http://127.0.0.1:8801``), the script runs the whole
experiment on one node: it starts each server on its GPUs, waits for it, starts the ranks on the others, and
ends the servers however it ends.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from skillpress.core.arguments import real, whole
from skillpress.core.errors import ParamsError
from skillpress.experiment.params import Params, check_params
from skillpress.models.engines.serve import ServerOptions
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant

MACHINE = "machine"
"""The name of a script for one machine, which needs no scheduler."""
SCHEDULERS = {
    "slurm": "slurm.sh",
    "kubernetes": "kubernetes.yaml",
    "skypilot": "skypilot.yaml",
    MACHINE: "machine.sh",
}
"""The template in infra/launch for each scheduler."""
START_SECONDS = 900
"""Seconds that a server may take until it can sample."""
LONGEST_NAME = 52
"""Longest name of a job. A DNS label has 63 characters; Kubernetes adds a pod's number and its own suffix."""


@dataclass(frozen=True)
class Machines:
    """The machines on which an experiment trains."""

    scheduler: str
    nodes: int
    gpus: bool
    """Whether each process has a GPU, and each server those that it is spread over."""
    server_gpus: int = 1
    """Number of GPUs over which the weights of each server are spread."""
    server_cache: float = ServerOptions.cache_gib
    """GiB of keys and values on each GPU of a server."""


def add_launch_options(parser: ArgumentParser) -> None:
    """Add ``--launch``, for a dry run, and its options."""
    parser.add_argument("--launch", choices=SCHEDULERS, help="with --dry-run: print its script")
    parser.add_argument("--nodes", type=whole(1), default=1, help="with --launch: machines that train")
    parser.add_argument(
        "--gpus", action="store_true", help="with --launch: one GPU for each process, and those of servers"
    )
    parser.add_argument(
        "--server-gpus", type=whole(1), default=1, help="with --dry-run: GPUs of each server on the node"
    )
    parser.add_argument(
        "--server-cache",
        type=real(above=0),
        default=ServerOptions.cache_gib,
        help="with --dry-run: GiB of keys and values on each GPU of a server",
    )


def launch_script(variant: Variant, machines: Machines, repository: Path) -> str:
    """The filled-in template.

    Raises:
        ParamsError: the parameters are wrong, nodes cannot share ``processes`` evenly, or several nodes are
            to share servers at addresses that only one of them reaches.
    """
    values = variant.values(repository)
    processes = int(values["processes"])
    if machines.nodes < 1 or processes % machines.nodes:
        raise ParamsError(
            f"processes: is {processes}, which {machines.nodes} nodes (--nodes) cannot share evenly; it "
            "is how many processes train in all"
        )
    if machines.scheduler == MACHINE and machines.nodes > 1:
        raise ParamsError(f"--nodes: is {machines.nodes}, and --launch {MACHINE} is for one")
    folder = repository / FOLDER / variant.name if variant.name else repository
    params = check_params(values, source=variant.name or "params.yaml")
    servers = server_options(params, machines, folder) if params.engine.shared else []
    if servers and machines.nodes > 1:
        raise ParamsError(
            f"engine.urls: {servers[0].url} is another server on each of {machines.nodes} nodes (--nodes), "
            "and every process asks every server: use one node, or addresses that all nodes reach, where "
            "you start the servers yourself"
        )
    ranks = processes // machines.nodes
    templates = Environment(
        loader=FileSystemLoader(repository / "infra" / "launch"),
        comment_start_string="{##", comment_end_string="##}",  # bash has ${#array[@]}
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return templates.get_template(SCHEDULERS[machines.scheduler]).render(
        title=variant.name or "the default experiment",
        name=_resource_name(variant.name),
        nodes=machines.nodes,
        ranks=ranks,
        servers=servers,
        per_node=ranks + sum(server.gpus for server in servers),
        visible=_visible,
        wait=START_SECONDS,
        gpus=machines.gpus,
        repository=shlex.quote(str(repository)),
        folder=shlex.quote(str(folder)),
        options=_options(variant),
    )


def server_options(params: Params, machines: Machines, folder: Path) -> list[ServerOptions]:
    """How the script starts each server on its node; its GPUs follow those of the ranks, one after the other.

    Args:
        folder: the workspace, whose ``models/base`` the servers begin with.
    """
    from skillpress.experiment.estimate import longest  # in seconds, as torch is behind it
    from skillpress.experiment.fitting import rows_of_server, servers_here
    from skillpress.pipeline.reproduce.dry_run import model_shape

    urls = servers_here(params)
    if not urls:
        return []
    shape, _ = model_shape(params)
    tokens = params.policy.context_tokens + params.sampling.max_new_tokens
    return [
        ServerOptions(
            model=str(folder / "models" / "base"),
            port=urlsplit(url).port or 80,
            host=urlsplit(url).hostname or "",
            longest=tokens if shape is None else longest(params, shape),
            dtype=params.policy.dtype,
            slots=rows_of_server(params),
            cache_gib=machines.server_cache,
            gpus=machines.server_gpus,
        )
        for url in urls
    ]


def _visible(first: int, count: int) -> str:
    """The GPUs from number ``first`` on, as the value of CUDA_VISIBLE_DEVICES."""
    return ",".join(f"${{gpu[{number}]}}" for number in range(first, first + count))


def _options(variant: Variant) -> str:
    """The variant as options of ``skillpress.pipeline.reproduce``, each followed by a space."""
    return "".join(f"{shlex.quote(word)} " for word in variant.options)


def _resource_name(name: str) -> str:
    """A name that DNS allows, as Kubernetes needs it; a long one is cut and ends in a hash of the whole."""
    whole = "-".join(["skillpress", *re.findall("[a-z0-9]+", name.lower())])
    if len(whole) <= LONGEST_NAME:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{whole[: LONGEST_NAME - len(digest) - 1].rstrip('-')}-{digest}"
