"""The machine that a benchmark ran on, as its record names it."""

from __future__ import annotations

import argparse
import os
import platform
from typing import Any

import torch
import transformers


def machine(load_before: float | None = None) -> dict[str, Any]:
    """Python, cores and load: now, or before and now."""
    load = os.getloadavg()[0]
    return {
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load": load if load_before is None else [load_before, load],
    }


def setting(chosen: argparse.Namespace) -> dict[str, Any]:
    """A benchmark's options, and what computes with a model here."""
    return {
        **vars(chosen),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "machine": platform.machine(),
        "load": os.getloadavg()[0],
    }
