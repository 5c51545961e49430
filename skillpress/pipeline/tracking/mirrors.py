"""The trackers that get a copy of MLflow's record: Weights & Biases and TensorBoard, by their own packages.

``SKILLPRESS_TRACKING=mlflow,wandb,tensorboard`` names them. It is a setting and not a parameter, because
recording affects no result. Each gets the metrics, the flat parameters and the name of every stage's run, in
the order in which MLflow recorded them, and no step twice. Each reads its own variables, such as
``WANDB_MODE=offline``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from skillpress.core.errors import ParamsError, UserError

TRACKERS = "SKILLPRESS_TRACKING"
_MLFLOW = "mlflow"


@dataclass(frozen=True)
class Mirrored:
    """A stage's run in MLflow, as far as another tracker names and describes it."""

    experiment: str
    stage: str
    run_id: str
    params: Mapping[str, str]


class Mirror(Protocol):
    """Another tracker's copy of one stage's run."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log metrics; step 0 is for final figures."""

    def finish(self, well: bool) -> None:
        """End the copy with everything written; a stage that continues later continues the same copy."""


class WandbMirror:
    """A run of W&B with MLflow's id, in the group of its experiment; a resumed stage continues it."""

    def __init__(self, run: Mirrored) -> None:
        import wandb  # 0.7 s, which others need not take

        settings = wandb.Settings(console="off", silent=True, x_disable_stats=True)  # they are the recorder's
        try:
            self._run = wandb.init(
                id=run.run_id, name=f"{run.experiment} {run.stage}", group=run.experiment,
                job_type=run.stage, config=dict(run.params), resume="allow", settings=settings,
            )  # fmt: skip
        except wandb.Error as error:
            raise UserError(f"{TRACKERS} names wandb, which cannot begin a run: {error}") from error

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if step:
            self._run.log(dict(metrics), step=step)
        else:  # W&B drops a step below the last
            self._run.summary.update(dict(metrics))

    def finish(self, well: bool) -> None:
        self._run.finish(exit_code=0 if well else 1)


class TensorBoardMirror:
    """Event files in ``TENSORBOARD_LOGGING_DIR/EXPERIMENT/STAGE ID``, parameters for the page *HParams*."""

    def __init__(self, run: Mirrored) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        experiment = re.sub(r"[/\\]", "-", run.experiment)
        folder = Path(os.environ["TENSORBOARD_LOGGING_DIR"], experiment, f"{run.stage} {run.run_id[:6]}")
        self._writer = EventFileWriter(str(folder))
        self._write(hparams_pb(dict(run.params), trial_id=run.run_id), 0)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=float(value)) for name, value in metrics.items()]
        self._write(Summary(value=values), step)

    def finish(self, well: bool) -> None:
        self._writer.close()

    def _write(self, summary: object, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()  # a killed stage has left what it logged


MIRRORS: dict[str, Callable[[Mirrored], Mirror]] = {"wandb": WandbMirror, "tensorboard": TensorBoardMirror}


def trackers() -> list[str]:
    """The trackers that the setting names in addition to MLflow.

    Raises:
        ParamsError: it names another one, leaves MLflow out, or names a package that is not installed.
    """
    value = os.environ.get(TRACKERS, _MLFLOW)
    first, *others = [name.strip() for name in value.split(",")]
    if first != _MLFLOW or not set(others) <= MIRRORS.keys():
        raise ParamsError(
            f"{TRACKERS} is {value!r}; must be mlflow, or mlflow and then any of {', '.join(MIRRORS)}, "
            "such as mlflow,tensorboard"
        )
    for name in others:
        if find_spec(name) is None:
            raise ParamsError(
                f"{TRACKERS} names {name}, which is not installed: pip install 'skillpress[trackers]'"
            )
    return list(dict.fromkeys(others))
