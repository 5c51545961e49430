"""One experiment, reproduced stage by stage.

DVC's graph says what depends on what and what has changed. This flow adds Prefect's part: retries, a record
of every run, artifacts, and schedules with a time limit (infra/prefect.yaml). ``flows/run.py`` is its
command.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from dvc.exceptions import DvcException
from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.interrupts import KEPT, interruptible
from flows.own_server import OwnServer, end_if_it_is_gone
from flows.stages import STAGE_SECONDS, StageFailedError, reproduce_stage, stage_order
from skillpress.core.errors import UserError
from skillpress.core.redaction import without_secrets
from skillpress.core.storage import read_json
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.finished.effect import effect_line
from skillpress.pipeline.reproduce.holding import held_workspace
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.runs import FLOW_RUN_VARIABLE, create_database
from skillpress.pipeline.whole_run import ALL, STAGES

EXPECTED = (UserError, StageFailedError, DvcException)
"""The errors that end a flow with only their message."""


@flow(name="experiment", flow_run_name="{name}")
def experiment(
    params: Sequence[str] = (),
    seed: int | None = None,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    name: str = "default",
    assignments: Sequence[str] = (),
    stage_seconds: float | None = STAGE_SECONDS,
) -> State[None]:
    """Reproduce one variant of the experiment.

    Args:
        params: overlays, laid over params.yaml in order.
        seed: replaces the one in the params files.
        wait_seconds: how long to wait for another run of the same variant.
        name: the name of the flow run.
        assignments: such as ``training.steps=5``, over all overlays.
        stage_seconds: the time limit of a stage; None means none.
    """
    variant = Variant(tuple(map(Path, params)), seed, tuple(assignments))
    try:
        steps = variant.values(ROOT)["training"]["steps"]
        create_database()
        with (
            interruptible("experiment", KEPT),
            held_workspace(variant, wait_seconds) as workspace,
        ):
            walk(workspace, stage_seconds)
        change = effect_line(workspace / RESULTS, steps)
    except EXPECTED as error:
        return Failed(message=str(error))
    return Completed(message=f"report: {workspace / RESULTS / 'report.html'}\n{change}")


def walk(workspace: Path, stage_seconds: float | None) -> None:
    """Reproduce every stage in order, and save the results as artifacts."""
    os.environ[FLOW_RUN_VARIABLE] = str(flow_run.id)
    os.environ[STAGES] = ALL
    parent.name_this_process()
    made = reproduce_stage.with_options(timeout_seconds=stage_seconds) if stage_seconds else reproduce_stage
    rows = []
    try:
        for stage in stage_order():
            end_if_it_is_gone()
            started = time.monotonic()
            ran = made(stage)
            rows.append({"stage": stage, "ran": ran, "seconds": round(time.monotonic() - started, 1)})
    finally:
        del os.environ[FLOW_RUN_VARIABLE]
        create_table_artifact(rows, key="stages", description=f"Stages of {workspace}")
    figures = read_json(workspace / RESULTS / "metrics.json")
    table = [{"policy": policy, **values} for policy, values in figures.items()]
    create_table_artifact(table, key="metrics", description="Evaluation on held-out tasks")
    report = workspace / RESULTS / "report.html"
    create_markdown_artifact(f"Report: [{report}]({report.as_uri()})", key="report")


def reproduce(variant: Variant, wait_seconds: float, server: OwnServer | None) -> int:
    """The flow as a command, without a time limit; returns the exit code.

    Args:
        wait_seconds: how long to wait for another run of the same variant.
        server: the server that this run has started; None if another one is used.

    Raises:
        UserError: MLflow's database cannot be used, or the server has ended.
    """
    create_database()
    if server is not None:
        server.wait_until_ready()
    name = variant.name or "default"
    try:
        state = experiment(
            params=[str(file) for file in variant.overlays],
            seed=variant.seed,
            wait_seconds=wait_seconds,
            name=name,
            assignments=variant.assignments,
            stage_seconds=None,
            return_state=True,
        )
    except httpx.TransportError:
        if server is not None:
            server.check()
        raise
    if state.is_completed():
        print(without_secrets(str(state.message)))
        return 0
    exit_codes.say(f"experiment {name}: {state.message}")
    return exit_codes.USER_ERROR
