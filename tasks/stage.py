"""How every stage starts and ends, whatever it computes.

``run_stage(name, work)`` checks params.yaml before anything else, opens the stage's MLflow run, calls
``work(stage)``, and turns what a user can put right (a wrong parameter, a missing or damaged file, a
full disk, Ctrl-C) into one clear line and an exit code of ``exit_codes``. Any other error is a bug of
ours: it keeps its traceback and exits with 1.

The heavy imports of a stage stand inside its ``work`` function, so that a wrong parameter is refused
at once and not after ten seconds of importing torch.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from skillpress.params import Params, load_params
from skillpress.storage import StorageError
from tasks import exit_codes
from tasks.progress import Progress
from tasks.recorder import Recorder, TrackingError

USER_ERRORS = (StorageError, ValueError, OSError, TrackingError)
"""What the library's checks raise (``ParamsError`` is a ``ValueError``), and a disk or a tracking
database that cannot be written. Each message says what is wrong."""


@dataclass(frozen=True)
class Stage:
    """What a stage is given."""

    name: str
    params: Params
    run: Recorder
    """Where its metrics and files go in MLflow."""

    def progress(self, total: int, unit: str) -> Progress:
        """Progress of this stage towards ``total`` units; it ends where MLflow takes no more."""
        return Progress(self.name, total, unit, self.run.check)


def run_stage(name: str, work: Callable[[Stage], None]) -> int:
    """Run the stage ``name``; returns this process's exit code."""
    run: Recorder | None = None
    try:
        params = load_params()
        run = Recorder(name, params)
        started = time.monotonic()
        work(Stage(name, params, run))
        seconds = time.monotonic() - started
        run.log_metrics({"seconds": seconds})
        run.finish("FINISHED")
    except KeyboardInterrupt:
        _close(run, "KILLED")
        print(f"{name}: interrupted; what is finished is kept, run again to go on", file=sys.stderr)
        return exit_codes.INTERRUPTED
    except USER_ERRORS as error:
        _close(run, "FAILED", traceback.format_exc())
        print(f"{name}: {error}", file=sys.stderr)
        return exit_codes.USER_ERROR
    except Exception:
        _close(run, "FAILED", traceback.format_exc())
        raise
    print(f"{name}: done in {seconds:.1f} s")
    return 0


def _close(run: Recorder | None, status: str, trace: str = "") -> None:
    """End the run with the error's traceback beside it, as far as the disk still takes it."""
    if run is None:
        return
    with suppress(*USER_ERRORS):
        if trace:
            run.log_error(trace)
        run.finish(status)
