"""What a dry run compares with and estimates from: devices and their memory, and throughputs.

The devices are this machine's, or others that the options give; throughputs come from the options alone."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from skillpress.core.arguments import real, whole
from skillpress.core.errors import ParamsError

if TYPE_CHECKING:
    from skillpress.experiment.fitting import Devices

GB = 10**9
"""The unit in which cards are sold; a card of 80 GB has a little more."""


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """``--devices`` and ``--device-memory``."""
    parser.add_argument(
        "--devices", type=whole(1), help="with --dry-run: GPUs to fit; else this machine's memory"
    )
    parser.add_argument("--device-memory", type=real(above=0), help="with --devices: GB of each, as in 80")


def asked_for(chosen: argparse.Namespace) -> Devices:
    """The devices of the options, or this machine's; ``ParamsError`` if one option is missing."""
    count, size = chosen.devices, chosen.device_memory
    if count is None and size is None:
        return this_machine()
    if count is None or size is None:
        raise ParamsError(
            f"--devices is {count} and --device-memory {size}: give both, such as --devices 8 "
            "--device-memory 80"
        )
    from skillpress.experiment.fitting import Devices

    return Devices(f"{count} devices of {size:g} GB", int(size * GB), count)


def this_machine() -> Devices:
    """Its GPUs, or its main memory if it has no GPU."""
    import torch

    from skillpress.experiment.fitting import Devices

    if torch.cuda.is_available():
        numbers = range(torch.cuda.device_count())
        least = min(torch.cuda.get_device_properties(number).total_memory for number in numbers)
        return Devices(
            f"this machine's {len(numbers)} GPUs of {least / GB:.0f} GB", least, len(numbers), here=True
        )
    memory = psutil.virtual_memory().total
    return Devices(f"this machine's memory of {memory / GB:.0f} GB", memory, None, here=True)


@dataclass(frozen=True)
class Rates:
    """Throughputs for estimates; None for one that was not given."""

    sampling: float | None = None
    """Tokens per second, both in prompts and sampled."""
    training: float | None = None
    """Tokens per second, both in prompts and in responses."""
    step_ms: float | None = None


def add_rate_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sampling-rate``, ``--training-rate`` and ``--step-ms``."""
    parser.add_argument("--sampling-rate", type=real(above=0), help="tokens per second through the engine")
    parser.add_argument("--training-rate", type=real(above=0), help="tokens per second through the learner")
    parser.add_argument("--step-ms", type=real(above=0), help="milliseconds of one environment step")
