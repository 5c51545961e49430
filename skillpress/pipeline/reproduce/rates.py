"""Throughputs that a dry run estimates times from; nothing else tells how long a machine would take."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from skillpress.core.arguments import real


@dataclass(frozen=True)
class Rates:
    """Throughputs to estimate times from; None where none is stated."""

    sampling: float | None = None
    """Tokens per second, prompts' and sampled ones alike."""
    training: float | None = None
    """Tokens per second, prompts' and responses' alike."""
    step_ms: float | None = None


def add_rate_options(parser: argparse.ArgumentParser) -> None:
    """``--sampling-rate``, ``--training-rate`` and ``--step-ms``."""
    parser.add_argument("--sampling-rate", type=real(above=0), help="tokens per second through the engine")
    parser.add_argument("--training-rate", type=real(above=0), help="tokens per second through the learner")
    parser.add_argument("--step-ms", type=real(above=0), help="milliseconds of one environment step")
