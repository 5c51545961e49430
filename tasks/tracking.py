"""What came out of a run, in MLflow: one parent run per experiment, one nested run per stage.

The parent is found by a tag, ``pipeline_run_id``, which is the hash of the resolved parameters: the
stages are processes of their own and need tell each other nothing. A stage that was killed finds its
own unfinished run (same parent, same inputs) and goes on in it. Further tags tie a run to DVC's graph
(``dvc.stage``, ``dvc.rev``, one ``dvc.dep.*`` per data input) and to Prefect (``prefect.flow_run_id``).

``python -m tasks.tracking`` creates the database. Processes that would do so at the same time take
turns, or they would crash in each other's migrations.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

from skillpress.params import Params
from tasks.dependencies import data_hashes

EXPERIMENT = "skillpress"
FLOW_RUN_VARIABLE = "SKILLPRESS_FLOW_RUN_ID"
"""A flow names itself here to the stages that it starts."""
_DATABASE = "sqlite:///"


def create_database() -> str:
    """Make the tracking database and the experiment where they are missing; returns its id."""
    uri = os.environ["MLFLOW_TRACKING_URI"]
    if not uri.startswith(_DATABASE):
        return _experiment(None)  # a tracking server decides itself where artifacts lie
    folder = Path(uri.removeprefix(_DATABASE)).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "create.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _experiment(folder.as_uri())


def _experiment(artifacts: str | None) -> str:
    client = MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    return client.create_experiment(name, artifact_location=artifacts and f"{artifacts}/{name}")


def pipeline_run_id(params: Params) -> str:
    """The hash that names an experiment: of its resolved parameters, the seed included."""
    text = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` and value of nested parameters."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def revision() -> str:
    """The commit of the code, with ``-dirty`` when files differ from it; ``unknown`` outside git."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return described.stdout.strip() or "unknown"


class StageRun:
    """The nested run of one stage of one experiment."""

    def __init__(self, stage: str, params: Params) -> None:
        """Find or create the experiment's run, and the stage's below it."""
        self._experiment_id = create_database()
        self._client = MlflowClient()
        self.parent_id = self._parent(params)
        self.run_id = self._nested(stage, pipeline_run_id(params))
        self._logged_until: int | None = None

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Log all metrics of a step in one call; a resumed stage does not log a step twice."""
        if step and step <= self._last_logged(next(iter(metrics))):
            return
        now = time.time_ns() // 1_000_000
        values = [Metric(name, float(value), now, step) for name, value in metrics.items()]
        self._client.log_batch(self.run_id, metrics=values)

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        """Log final figures, on the experiment's own run too, where experiments are compared."""
        now = time.time_ns() // 1_000_000
        values = [Metric(name, float(value), now, 0) for name, value in metrics.items()]
        for run_id in (self.run_id, self.parent_id):
            self._client.log_batch(run_id, metrics=values)

    def log_file(self, path: str | Path) -> None:
        """Keep a file as an artifact, on the experiment's own run too."""
        for run_id in (self.run_id, self.parent_id):
            self._client.log_artifact(run_id, str(path))

    def log_error(self, trace: str) -> None:
        """Keep the traceback of an error whose message alone is shown."""
        self._client.log_text(self.run_id, trace, "error.txt")

    def finish(self, status: str) -> None:
        """End both runs as ``FINISHED``, ``FAILED`` or ``KILLED``; the parent follows its last stage."""
        for run_id in (self.run_id, self.parent_id):
            self._client.set_terminated(run_id, status)

    def _parent(self, params: Params) -> str:
        identity = pipeline_run_id(params)
        found = self._search(f"tags.pipeline_run_id = '{identity}' AND tags.level = 'experiment'")
        if found is not None:
            self._client.update_run(found.info.run_id, status="RUNNING")
            return str(found.info.run_id)
        folder = Path.cwd()
        workspace = folder.name if folder.parent.name == "workspaces" else "default"
        tags = {"pipeline_run_id": identity, "level": "experiment", "workspace": workspace}
        run = self._client.create_run(
            self._experiment_id, tags=tags, run_name=f"{workspace} seed {params.seed} {identity[:6]}"
        )
        values = [Param(name, str(value)) for name, value in flatten(params.model_dump(mode="json"))]
        self._client.log_batch(run.info.run_id, params=values)
        return str(run.info.run_id)

    def _nested(self, stage: str, identity: str) -> str:
        tags = {
            "mlflow.parentRunId": self.parent_id,
            "pipeline_run_id": identity,
            "level": "stage",
            "dvc.stage": stage,
            "dvc.rev": revision(),
        }
        tags |= {f"dvc.dep.{path}": digest for path, digest in data_hashes(stage).items()}
        flow_run = os.environ.get(FLOW_RUN_VARIABLE)
        same = [f"tags.`{name}` = '{value}'" for name, value in tags.items()]
        found = self._search(" AND ".join([*same, "attributes.status != 'FINISHED'"]))
        if found is not None:
            self._client.update_run(found.info.run_id, status="RUNNING")
            run_id = str(found.info.run_id)
        else:
            run_id = self._client.create_run(self._experiment_id, tags=tags, run_name=stage).info.run_id
        if flow_run:
            for run in (run_id, self.parent_id):
                self._client.log_batch(run, tags=[RunTag("prefect.flow_run_id", flow_run)])
        return run_id

    def _search(self, query: str) -> Run | None:
        found = self._client.search_runs([self._experiment_id], query, max_results=1)
        return found[0] if found else None

    def _last_logged(self, metric: str) -> int:
        if self._logged_until is None:
            try:
                history = self._client.get_metric_history(self.run_id, metric)
            except MlflowException:  # it was never logged
                history = []
            self._logged_until = max((point.step for point in history), default=0)
        return self._logged_until


def log_comparison(
    name: str, parameters: Mapping[str, Any], metrics: Mapping[str, float], files: Iterable[Path]
) -> None:
    """A run of its own for what was found by comparing experiments."""
    client = MlflowClient()
    tags = {"level": "comparison", "dvc.rev": revision()}
    flow_run = os.environ.get(FLOW_RUN_VARIABLE)
    if flow_run:
        tags["prefect.flow_run_id"] = flow_run
    run_id = client.create_run(create_database(), tags=tags, run_name=name).info.run_id
    now = time.time_ns() // 1_000_000
    client.log_batch(
        run_id,
        metrics=[Metric(key, value, now, 0) for key, value in metrics.items()],
        params=[Param(key, str(value)) for key, value in parameters.items()],
    )
    for path in files:
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id)


if __name__ == "__main__":
    import tasks  # noqa: F401

    create_database()
    print(f"tracking database: {os.environ['MLFLOW_TRACKING_URI']}")
