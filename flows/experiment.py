"""One experiment, reproduced stage by stage.

    python -m flows.experiment                                    the default experiment
    python -m flows.experiment --params params/grpo.yaml --seed 1

DVC's graph says what depends on what and what has changed. This flow adds Prefect's part: retries, a time
limit, a record of every run, artifacts, and schedules (infra/prefect.yaml).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from dvc.exceptions import DvcException
from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.interrupts import interruptible
from flows.prefect_database import create_for_flow
from flows.stages import KEPT, StageFailedError, reproduce_stage, stage_order
from skillpress.core.arguments import CommandParser, real
from skillpress.core.errors import UserError
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.core.storage import read_json
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.finished.effect import effect_line
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS, exclusive, workspace_lock
from skillpress.pipeline.reproduce.repair import repair
from skillpress.pipeline.reproduce.workspace import (
    Variant,
    add_variant_options,
    prepare_workspace,
    variant_of,
)
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
) -> State[None]:
    """Reproduce one variant of the experiment.

    Args:
        params: overlays, laid over params.yaml in order.
        seed: replaces the one in the params files.
        wait_seconds: how long to wait for another run of the same variant.
        name: the name of the flow run.
        assignments: such as ``training.steps=5``, over all overlays.
    """
    variant = Variant(tuple(map(Path, params)), seed, tuple(assignments))
    try:
        steps = variant.values(ROOT)["training"]["steps"]
        create_database()
        workspace = ROOT / "workspaces" / variant.name if variant.name else ROOT
        with (
            interruptible("experiment", KEPT),
            exclusive(workspace_lock(workspace), str(workspace), wait_seconds),
        ):
            prepare_workspace(ROOT, variant)
            repair(workspace)
            with chdir(workspace):
                walk(workspace)
        change = effect_line(workspace / RESULTS, steps)
    except EXPECTED as error:
        return Failed(message=str(error))
    return Completed(message=f"{workspace / RESULTS / 'report.html'}\n{change}")


def walk(workspace: Path) -> None:
    """Reproduce every stage in order, and save the results as artifacts."""
    os.environ[FLOW_RUN_VARIABLE] = str(flow_run.id)
    os.environ[STAGES] = ALL
    parent.name_this_process()
    rows = []
    try:
        for stage in stage_order():
            started = time.monotonic()
            ran = reproduce_stage(stage)
            rows.append({"stage": stage, "ran": ran, "seconds": round(time.monotonic() - started, 1)})
    finally:
        del os.environ[FLOW_RUN_VARIABLE]
        create_table_artifact(rows, key="stages", description=f"Stages of {workspace}")
    figures = read_json(workspace / RESULTS / "metrics.json")
    table = [{"policy": policy, **values} for policy, values in figures.items()]
    create_table_artifact(table, key="metrics", description="Evaluation on held-out tasks")
    report = workspace / RESULTS / "report.html"
    create_markdown_artifact(f"Report: [{report}]({report.as_uri()})", key="report")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    add_variant_options(parser)
    parser.add_argument(
        "--wait", type=real(at_least=0), default=DEFAULT_WAIT_SECONDS, help="seconds to wait for another run"
    )
    chosen = parser.parse_args(arguments)
    try:
        variant = variant_of(chosen)
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    name = variant.name or "default"
    files = [str(file) for file in chosen.params]
    with interruptible("experiment", KEPT):
        create_for_flow(lambda: variant.values(ROOT))
        state = experiment(files, chosen.seed, chosen.wait, name, chosen.set, return_state=True)
    return exit_codes.ended(state.is_completed(), f"experiment {name}: {state.message}")


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    sys.exit(main())
