"""A small training of the smoke experiment in this process, which a test can stop early."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.experiment.params import merge
from skillpress.experiment.training import train
from tests.support.programs.training_program import job, prepare

Curve = list[dict[str, float]]


class StoppedError(Exception):
    """Stops a training, in place of any real cause."""


def prepared(overlay: Mapping[str, Any] | str, **settings: Any) -> Any:
    """A fixture of a module: a prepared folder with this overlay, see ``training_program.py``."""

    @pytest.fixture(scope="module")
    def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
        path = tmp_path_factory.mktemp("prepared")
        prepare(path, overlay if isinstance(overlay, str) else yaml.safe_dump(overlay), **settings)
        return path

    return folder


def train_small(folder: Path, name: str, *overlays: Mapping[str, Any], stop_after: int = 0) -> Curve:
    """Train with these overlays, applied in order, to the model folder ``name``; returns the curve.

    Args:
        folder: a prepared folder, see ``training_program.py``.
        stop_after: the step after which the training is stopped; 0 means that it is not stopped.

    Raises:
        StoppedError: the training was stopped.
    """
    overlay: dict[str, Any] = {}
    for each in overlays:
        overlay = merge(overlay, each)
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))

    def on_step(step: int, metrics: dict[str, float]) -> None:
        if step and step == stop_after:
            raise StoppedError

    return train(job(folder, name), on_step)
