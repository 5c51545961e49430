"""What a dry run compares with and estimates from: devices and their memory, servers, and throughputs.

The devices are this machine's, or others that the options give; throughputs come from the options, or from a
file of measured training steps that they name."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from skillpress.core.arguments import real, whole
from skillpress.core.errors import ParamsError

if TYPE_CHECKING:
    from skillpress.experiment.node import Devices, Servers

GB = 10**9
"""The unit in which cards are sold; a card of 80 GB has a little more."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """``--devices``, ``--device-memory``, and the options of servers on them."""
    parser.add_argument(
        "--devices", type=whole(1), help="with --dry-run: GPUs of a node; without it, this machine's"
    )
    parser.add_argument("--device-memory", type=real(above=0), help="with --devices: GB of each, as in 80")
    parser.add_argument(
        "--server-gpus", type=whole(1), default=1, help="with --dry-run: GPUs of each server on the node"
    )
    parser.add_argument(
        "--server-cache",
        type=real(above=0),
        help="with --dry-run: GiB of keys and values on each GPU of a server; else what it needs",
    )


def asked_for(chosen: argparse.Namespace) -> Devices:
    """The devices of the options, or this machine's; ``ParamsError`` if one option is missing."""
    count, size, nodes = chosen.devices, chosen.device_memory, chosen.nodes
    from skillpress.experiment.node import Devices, Servers

    servers = Servers(chosen.server_gpus, chosen.server_cache)
    if count is None and size is None:
        return this_machine(servers)
    if count is None or size is None:
        raise ParamsError(
            f"--devices is {count} and --device-memory {size}: give both, such as --devices 8 "
            "--device-memory 80"
        )
    words = f"{count} devices of {size:g} GB" if nodes == 1 else f"{nodes} nodes of {count} x {size:g} GB"
    return Devices(words, int(size * GB), count=nodes * count, nodes=nodes, servers=servers)


def this_machine(servers: Servers) -> Devices:
    """Its GPUs, or its main memory if it has no GPU."""
    import torch

    from skillpress.experiment.node import Devices

    if torch.cuda.is_available():
        numbers = range(torch.cuda.device_count())
        least = min(torch.cuda.get_device_properties(number).total_memory for number in numbers)
        return Devices(
            f"this machine's {len(numbers)} GPUs of {least / GB:.0f} GB",
            least,
            count=len(numbers),
            here=True,
            servers=servers,
        )
    memory = psutil.virtual_memory().total
    words = f"this machine's memory of {memory / GB:.0f} GB"
    return Devices(words, memory, count=None, here=True, servers=servers)


@dataclass(frozen=True)
class Rates:
    """Throughputs for estimates; None for one that was not given."""

    sampling: float | None = None
    """Tokens per second of one engine, a process's or a server's, both in prompts and sampled."""
    training: float | None = None
    """Tokens per second, both in prompts and in responses."""
    step_ms: float | None = None
    measured: Path | None = None
    """``results/training.csv`` of a few steps of the same experiment on the same devices."""


def add_rate_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sampling-rate``, ``--training-rate``, ``--step-ms`` and ``--measured``."""
    parser.add_argument("--sampling-rate", type=real(above=0), help="tokens per second through one engine")
    parser.add_argument("--training-rate", type=real(above=0), help="tokens per second through the learner")
    parser.add_argument("--step-ms", type=real(above=0), help="milliseconds of one environment step")
    parser.add_argument(
        "--measured", type=Path, metavar="TRAINING.CSV", help="hours by the steps of a trial's results"
    )
