"""DVC's graph, executed in process with one Prefect task run per stage.

DVC decides whether a stage has to run at all, so a retried or repeated task does no work twice.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
from dvc.exceptions import ReproductionError
from dvc.repo import Repo
from prefect import task
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from flows import secret
from flows.children import children_stopped
from flows.interrupts import interruptible
from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce.dvc_call import stage_exit_code
from skillpress.rollouts.workers.ranks import exit_in_words

KEPT = "finished stages and checkpoints are kept"
RETRY_DELAYS_SECONDS = [10.0, 60.0]
STAGE_TIMEOUT_SECONDS = 24 * 3600.0


class StageFailedError(RuntimeError):
    """A stage's process failed; its message is in the output above."""

    def __init__(self, stage: str, exit_code: int) -> None:
        super().__init__(
            f"stage {stage} failed with {exit_in_words(exit_code)}; its message is in the output above"
        )
        self.exit_code = exit_code


def stage_order() -> list[str]:
    """The stages of the current folder's dvc.yaml, each after those that it depends on."""
    with Repo() as repo:
        return [stage.addressing for stage in reversed(list(nx.topological_sort(repo.index.graph)))]


def worth_retrying(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether to retry: not for an error that the user must fix, nor for a run that the user stopped."""
    error = state.result(raise_on_failure=False)
    code = error.exit_code if isinstance(error, StageFailedError) else None
    return code not in (exit_codes.USER_ERROR, exit_codes.INTERRUPTED)


@task(
    name="stage",
    task_run_name="{stage}",
    retries=len(RETRY_DELAYS_SECONDS),
    retry_delay_seconds=RETRY_DELAYS_SECONDS,
    retry_condition_fn=worth_retrying,
    timeout_seconds=STAGE_TIMEOUT_SECONDS,
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
            raise StageFailedError(stage, code) from error
