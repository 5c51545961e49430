"""A small training of the smoke experiment in this process, which may be stopped on its way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skillpress.experiment.params import merge
from skillpress.experiment.training import train
from tests.support.programs.training_program import job

Curve = list[dict[str, float]]


class StoppedError(Exception):
    """Replaces anything that ends a training."""


def train_small(folder: Path, name: str, *overlays: Mapping[str, Any], stop_after: int = 0) -> Curve:
    """Train with these overlays, one over the other, to the model folder ``name``; returns the curve.

    Args:
        folder: prepared, see ``training_program.py``.
        stop_after: the step behind which the training is stopped; 0 is none.

    Raises:
        StoppedError: it was stopped.
    """
    overlay: dict[str, Any] = {}
    for each in overlays:
        overlay = merge(overlay, each)
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))

    def on_step(step: int, metrics: dict[str, float]) -> None:
        if step == stop_after:
            raise StoppedError

    return train(job(folder, name), on_step)
