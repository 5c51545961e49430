"""Scripts for a cluster's scheduler, so that an experiment trains on several machines.

    skillpress run --dry-run --launch slurm --nodes 2 --gpus --params ... > job.sh

fills in a template of infra/launch and prints it; nothing is submitted. docs/scaling.md says how the ranks
find each other and what else runs where.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from skillpress.core.arguments import whole
from skillpress.core.errors import ParamsError
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant

SCHEDULERS = {"slurm": "slurm.sh", "kubernetes": "kubernetes.yaml", "skypilot": "skypilot.yaml"}
"""Name to the template in infra/launch."""
LONGEST_NAME = 52
"""Longest name of a job. A DNS label has 63 characters; Kubernetes adds a pod's number and its own suffix."""


@dataclass(frozen=True)
class Machines:
    """The machines that an experiment shall train on."""

    scheduler: str
    nodes: int
    gpus: bool
    """Whether each process has a GPU."""


def add_launch_options(parser: ArgumentParser) -> None:
    """Add ``--launch`` for a dry run, and ``--nodes`` and ``--gpus``, which ``--cluster`` uses too."""
    parser.add_argument("--launch", choices=SCHEDULERS, help="with --dry-run: print the scheduler's script")
    parser.add_argument(
        "--nodes", type=whole(1), default=1, help="with --launch, --cluster: machines that train"
    )
    parser.add_argument("--gpus", action="store_true", help="with either: one GPU for each process")


def launch_script(variant: Variant, machines: Machines, repository: Path) -> str:
    """The filled-in template; ``ParamsError`` for wrong parameters, or an uneven share of ``processes``."""
    processes = int(variant.values(repository)["processes"])
    if machines.nodes < 1 or processes % machines.nodes:
        raise ParamsError(
            f"processes: is {processes}, which {machines.nodes} nodes (--nodes) cannot share evenly; it "
            "is how many processes train in all"
        )
    folder = repository / FOLDER / variant.name if variant.name else repository
    templates = Environment(
        loader=FileSystemLoader(repository / "infra" / "launch"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return templates.get_template(SCHEDULERS[machines.scheduler]).render(
        title=variant.name or "the default experiment",
        name=_resource_name(variant.name),
        nodes=machines.nodes,
        ranks=processes // machines.nodes,
        gpus=machines.gpus,
        repository=shlex.quote(str(repository)),
        folder=shlex.quote(str(folder)),
        options=_options(variant),
    )


def _options(variant: Variant) -> str:
    """The variant as options of ``skillpress.pipeline.reproduce``, each followed by a space."""
    words = [word for overlay in variant.overlays for word in ("--params", str(overlay))]
    words += [] if variant.seed is None else ["--seed", str(variant.seed)]
    return "".join(f"{shlex.quote(word)} " for word in words)


def _resource_name(name: str) -> str:
    """A name that DNS allows, as Kubernetes needs it; a long one is cut and ends in a hash of the whole."""
    whole = "-".join(["skillpress", *re.findall("[a-z0-9]+", name.lower())])
    if len(whole) <= LONGEST_NAME:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{whole[: LONGEST_NAME - len(digest) - 1].rstrip('-')}-{digest}"
