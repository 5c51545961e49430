"""The devices with which a dry run compares: this machine's, or others that the options give."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import psutil

from skillpress.core.arguments import real, whole
from skillpress.core.errors import ParamsError

if TYPE_CHECKING:
    from skillpress.experiment.fitting import Devices

GB = 10**9
"""The unit in which cards are sold; a card of 80 GB has a little more."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--devices`` and ``--device-memory``."""
    parser.add_argument(
        "--devices", type=whole(1), help="with --dry-run: GPUs of a node; without it, this machine's"
    )
    parser.add_argument("--device-memory", type=real(above=0), help="with --devices: GB of each, as in 80")


def asked_for(chosen: argparse.Namespace) -> Devices:
    """The devices of the options, or this machine's; ``ParamsError`` if one option is missing."""
    from skillpress.experiment.fitting import Devices  # in seconds, as torch is behind it

    count, size, nodes = chosen.devices, chosen.device_memory, chosen.nodes
    if (count is None) != (size is None):
        raise ParamsError(
            f"--devices is {count} and --device-memory {size}: give both or neither, such as --devices 8 "
            "--device-memory 80"
        )
    if count is None:
        words, memory, gpus = _this_machine()
    else:
        words = f"{count} devices of {size:g} GB" if nodes == 1 else f"{nodes} nodes of {count} x {size:g} GB"
        memory, gpus = int(size * GB), nodes * count
    return Devices(
        words, memory, count=gpus, server_gpus=chosen.server_gpus, server_cache=chosen.server_cache
    )


def _this_machine() -> tuple[str, int, int | None]:
    """A description, the memory and the number of GPUs; without a GPU, the main memory and None."""
    import torch

    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        least = min(torch.cuda.get_device_properties(number).total_memory for number in range(count))
        return f"this machine's {count} GPUs of {least / GB:.0f} GB", least, count
    memory = psutil.virtual_memory().total
    return f"this machine's memory of {memory / GB:.0f} GB", memory, None
