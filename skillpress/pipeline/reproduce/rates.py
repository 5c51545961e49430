"""The throughputs from which a dry run estimates times; it has no other source for them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from skillpress.core.arguments import real


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
