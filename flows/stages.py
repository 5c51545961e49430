"""DVC's graph, executed in process with one Prefect task run per stage.

DVC decides whether a stage has to run at all, so a retried or repeated task does no work twice.
"""

from __future__ import annotations

import logging
from typing import Any

from dvc.exceptions import DvcException, ReproductionError
from dvc.repo import Repo
from dvc.repo.reproduce import get_active_graph, plan_repro
from prefect import task
from prefect.client.schemas.objects import State, TaskRun
from prefect.runtime import task_run
from prefect.tasks import Task

from flows import secret
from flows.children import children_stopped
from flows.interrupts import KEPT, interruptible
from skillpress.core.errors import UserError
from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce.dvc_call import stage_exit_code
from skillpress.rollouts.workers.ranks import exit_in_words

_LOG = logging.getLogger("skillpress.flows")

RETRY_DELAYS_SECONDS = [10.0, 60.0]
STAGE_SECONDS = 24 * 3600.0
"""The time limit of a stage of a scheduled experiment."""


class StageFailedError(RuntimeError):
    """A stage's process failed; its message is in the output above."""

    def __init__(self, stage: str, exit_code: int) -> None:
        super().__init__(
            f"stage {stage} failed with {exit_in_words(exit_code)}; its message is in the output above"
        )
        self.exit_code = exit_code


def _without_traceback(record: logging.LogRecord) -> bool:
    """Leave out the traceback of an error whose message is sufficient."""
    if record.exc_info and isinstance(record.exc_info[1], (StageFailedError, UserError, DvcException)):
        record.exc_info = None
    return True


logging.getLogger("prefect.task_runs").addFilter(_without_traceback)
logging.getLogger("dvc").propagate = False  # it prints its own lines, and Prefect would print them again


def stage_order() -> list[str]:
    """The stages of the current folder's dvc.yaml in the order of ``dvc repro``: dvc.lock keeps the order."""
    with Repo() as repo:
        return [stage.addressing for stage in plan_repro(get_active_graph(repo.index.graph))]


def worth_retrying(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether to retry: not for an error that the user must fix, nor for a run that the user stopped."""
    error = state.result(raise_on_failure=False)
    return retried(error.exit_code if isinstance(error, StageFailedError) else None)


def retried(code: int | None) -> bool:
    """Whether a stage that ended with this exit code is tried again; None means that DVC itself failed."""
    return code not in (exit_codes.USER_ERROR, exit_codes.INTERRUPTED)


@task(
    name="stage",
    task_run_name="{stage}",
    retries=len(RETRY_DELAYS_SECONDS),
    retry_delay_seconds=RETRY_DELAYS_SECONDS,
    retry_condition_fn=worth_retrying,
)
def reproduce_stage(stage: str) -> bool:
    """Bring one stage of the current folder's dvc.yaml up to date; returns whether it had to run.

    Raises:
        StageFailedError: its process failed.
        ReproductionError: DVC itself failed.
    """
    with interruptible("experiment", KEPT), Repo() as repo, children_stopped():
        try:
            return bool(repo.reproduce(stage, single_item=True))
        except ReproductionError as error:
            code = stage_exit_code(error)
            if code is None:
                raise
            if code == exit_codes.INTERRUPTED and not secret.is_elsewhere():
                raise KeyboardInterrupt from error  # DVC keeps Ctrl-C from this process while a stage runs
            failed = StageFailedError(stage, code)
            said_before_a_retry(failed)
            raise failed from error


def said_before_a_retry(failed: StageFailedError) -> None:
    """Print a line before a retry, because Prefect's own line is only in its database."""
    attempts = task_run.run_count
    if retried(failed.exit_code) and attempts <= len(RETRY_DELAYS_SECONDS):
        _LOG.warning("%s; tried again in %g seconds", failed, RETRY_DELAYS_SECONDS[attempts - 1])
