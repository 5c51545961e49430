"""The start and end of every stage, whatever it computes.

``run_stage(name)`` checks params.yaml before anything else, takes the stage's lock, removes what a killed
process left, opens the stage's MLflow run, imports the stage's module from ``tasks`` and calls its
``main(stage)``. A mistake that the user can correct (a wrong parameter, a damaged file, a full disk) and
Ctrl-C give one clear line and an exit code of ``exit_codes``. Any other error keeps its traceback and exits
with 1.
"""

from __future__ import annotations

import logging
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from skillpress.core.errors import is_user_error
from skillpress.core.log_lines import set_up
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import sweep
from skillpress.core.waiting import waiting
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import CHECKPOINTS
from skillpress.pipeline.fingerprints import Fingerprints
from skillpress.pipeline.graph import StageEntry, read_stage
from skillpress.pipeline.progress import StageProgress
from skillpress.pipeline.reproduce.lock import exclusive, stage_lock
from skillpress.pipeline.tracking.recorder import Recorder, TrackingError
from skillpress.pipeline.waits import Waits
from skillpress.pipeline.whole_run import WholeRun, remember, whole_run
from skillpress.rollouts.workers.launched import LaunchError, launch_of_environment

_LOG = logging.getLogger(__name__)

LOCK_WAIT_SECONDS = 120.0
"""Waiting time for a killed process of the same stage. Its recorder ends when it has recorded everything."""


@dataclass(frozen=True)
class Stage:
    """Everything that a stage receives."""

    name: str
    params: Params
    run: Recorder
    """Sends its metrics and files to MLflow."""
    store: ResumeStore
    """Keeps its unfinished work, under a hash of everything that affects its result."""
    whole: WholeRun | None = None
    """The run that the stage is part of; None if the stage runs alone."""

    def progress(self, total: int, unit: str, all_work: bool = True) -> StageProgress:
        """Progress of this stage towards ``total`` units; it stops the stage if MLflow can record no more.

        Args:
            all_work: whether nearly all of the stage's time goes to these units, so that their rate tells
                when it ends.
        """

        def whole(rest: float | None) -> str:
            return "" if self.whole is None else self.whole.words(rest if all_work else None)

        return StageProgress(self.name, total, unit, self.run.check, whole)

    def say(self, message: str) -> None:
        """Tell the user a fact, unless errors alone are shown."""
        _LOG.info("%s: %s", self.name, message)


def run_stage(name: str) -> int:
    """Run the stage ``name``, or this process's part of it under a launcher; returns the exit code."""
    try:
        set_up()
        params = load_params()
        entry = read_stage(name)
        if _is_helping_rank(name):
            key = entry.key(params.model_dump(mode="json"), _fingerprint(entry, params))
            import_module(f"tasks.{name}").help_rank_0(params, ResumeStore(CHECKPOINTS, key))
            return 0
        with exclusive(stage_lock(name), f"stage {name}", LOCK_WAIT_SECONDS) as lock, Waits(name):
            seconds = _work(entry, params, lock)
    except KeyboardInterrupt:
        exit_codes.say(f"{name}: interrupted; finished work is kept, run again to continue")
        return exit_codes.INTERRUPTED
    except Exception as error:
        if not is_user_error(error):
            raise
        exit_codes.say(f"{name}: {error}")
        return exit_codes.USER_ERROR
    _LOG.info("%s: done in %.1f s", name, seconds)
    return 0


LAUNCHED = "train_policy"
"""The stage that a launcher may start on several machines."""


def _is_helping_rank(name: str) -> bool:
    """Whether this is a launcher's further rank; ``LaunchError`` for stages that start their own."""
    launch = launch_of_environment()
    if launch is not None and name != LAUNCHED:
        raise LaunchError(
            f"a launcher started {launch.size} processes of a stage that runs once; only {LAUNCHED} is shared"
        )
    return launch is not None and launch.rank > 0


def _work(entry: StageEntry, params: Params, lock: int) -> float:
    """Do the stage's work and record it; returns the seconds that it took."""
    for output in entry.outputs:
        sweep(output)
    fingerprint = _fingerprint(entry, params)
    key = entry.key(params.model_dump(mode="json"), fingerprint)
    store = ResumeStore(CHECKPOINTS, key)
    store.sweep()
    resumed, values = store.folder.exists(), params.model_dump(mode="json")
    _LOG.debug("%s: key %s, %s", entry.name, key, "goes on" if resumed else "begins")
    whole = whole_run(entry.name, values)
    if whole is not None:
        _LOG.info("%s: %s", entry.name, whole.words())
    run = Recorder(entry.name, params, key, lock)
    plays = "environment.name" in fingerprint["parts"]
    around = params.environment.surroundings() if plays else {}
    run.log_parts({name: ", ".join(parts) for name, parts in fingerprint["parts"].items()} | dict(around))
    started = time.monotonic()
    try:
        import_module(f"tasks.{entry.name}").main(
            Stage(name=entry.name, params=params, run=run, store=store, whole=whole)
        )
        seconds = time.monotonic() - started
        run.log_metrics({"seconds": seconds})
        with waiting("waiting for MLflow's record"):
            run.finish("FINISHED")
        store.clear()  # not before: a stage without its record has failed, and its work is needed again
        if not resumed:
            remember(entry, values, time.monotonic() - started)
    except KeyboardInterrupt:
        _close(run, "KILLED")
        raise
    except Exception:
        _close(run, "FAILED", traceback.format_exc())
        raise
    return seconds


def _fingerprint(entry: StageEntry, params: Params) -> dict[str, Any]:
    """The present state of everything that affects the stage's result, except data and parameters."""
    fingerprints = Fingerprints.here(params)
    found = fingerprints.of(entry)
    fingerprints.code.sources.save()
    return found


def _close(run: Recorder, status: str, trace: str = "") -> None:
    """End the run, with the error's traceback as a file if the disk has room for it."""
    with suppress(TrackingError, OSError):
        if trace:
            run.log_error(trace)
        run.finish(status)
