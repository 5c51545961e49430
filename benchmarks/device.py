"""The device of a benchmark: its options, its name and clock, and its peak memory."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import torch


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--dtype``; the defaults are the CPU and float32."""
    parser.add_argument("--device", default="cpu", help="cpu, or cuda on a machine with a GPU")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")


def device_name(device: torch.device) -> str:
    """The device's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"


def finish(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def most_held(device: torch.device) -> int:
    """The peak in bytes of this process's memory on the device: a GPU's tensors, or all resident memory on a
    CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return status_bytes("VmHWM")


def status_bytes(field: str) -> int:
    """Bytes in a line of this process's status: VmRSS is the current memory, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
