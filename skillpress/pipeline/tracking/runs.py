"""What came out of a run, in MLflow: one run per experiment, one nested run per stage. The experiments of an
ablation stand below its run (``comparison_run.py``).

The parent is found by a tag, ``pipeline_run_id``, which is the hash of the resolved parameters: the
stages are processes of their own and need tell each other nothing. A stage that was killed finds its
own unfinished run by another tag, ``skillpress.key``, the hash of all that decides the stage's result
(code, inputs, parameters: the key of its unfinished work), and goes on in it; under another key it gets
a new run. Further tags tie a run to DVC's graph (``dvc.stage``, ``dvc.rev``, one ``dvc.dep.*`` per data
input) and to Prefect (``prefect.flow_run_id``).

``python -m skillpress.pipeline.tracking`` creates the database. Processes that would do so at the same
time take turns, or they would crash in each other's migrations. Artifacts lie in files: beside an SQLite
database, or under ``MLFLOW_DEFAULT_ARTIFACT_ROOT`` where ``MLFLOW_TRACKING_URI`` names a PostgreSQL one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from skillpress.core.version import __version__
from skillpress.experiment.params import Params
from skillpress.pipeline.redaction import without_secrets
from skillpress.pipeline.revision import revision
from skillpress.pipeline.tracking.dependencies import data_hashes
from skillpress.pipeline.tracking.episode_trace import StageRecord
from skillpress.pipeline.tracking.identity import pipeline_run_id
from skillpress.pipeline.tracking.registry import register_policy
from skillpress.pipeline.tracking.traces import log_traces

EXPERIMENT = "skillpress"
KEY = "skillpress.key"
"""The tag that names all that decides a stage's result."""
PART = "skillpress.part."
"""What the tags begin with that name the parts of an experiment."""
VERSION = "skillpress.version"
FLOW_RUN_VARIABLE = "SKILLPRESS_FLOW_RUN_ID"
"""A flow names itself here to the stages that it starts."""
PARENT_VARIABLE = "SKILLPRESS_PARENT_RUN_ID"
"""A comparison names its run here to the experiments that it starts."""
_PARENT = "mlflow.parentRunId"
"""MLflow's own tag of what stands below what."""
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql"
CREATE_SECONDS = 300
"""So long may another process take for PostgreSQL's tables."""


def create_database() -> str:
    """Make the tracking database and the experiment where they are missing; returns its id.

    Raises:
        MlflowException: what MLFLOW_TRACKING_URI names cannot be used; the message holds no password.
    """
    uri = os.environ["MLFLOW_TRACKING_URI"]
    try:
        if "@" in uri:
            check_database(uri)
        return _created(uri)
    except (MlflowException, SQLAlchemyError, ValueError) as error:
        why = without_secrets(str(error).partition("\n")[0])
        raise MlflowException(f"MLFLOW_TRACKING_URI cannot be used: {why}") from None


def check_database(uri: str) -> None:
    """Refuse a database's address that cannot be read; what libraries say of one may hold half a password.

    Raises:
        ValueError: it cannot be.
    """
    try:
        make_url(uri)
    except (ArgumentError, ValueError):
        raise ValueError(
            "it is no address such as postgresql://user:password@host/name; in a password write "
            "/ as %2F, : as %3A, @ as %40"
        ) from None


def _created(uri: str) -> str:
    if uri.startswith(_SQLITE):
        folder = Path(uri.removeprefix(_SQLITE)).resolve().parent
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "create.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _experiment(folder.as_uri())
    if uri.startswith(_POSTGRESQL):
        root = os.environ["MLFLOW_DEFAULT_ARTIFACT_ROOT"]
        with _creating(uri):
            return _experiment(root if "://" in root else Path(root).resolve().as_uri())
    return _experiment(None)  # a tracking server decides itself where artifacts lie


@contextmanager
def _creating(uri: str) -> Iterator[None]:
    """The right to create PostgreSQL's tables, which the database itself gives to one process at a time."""
    try:
        engine = create_engine(uri, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise MlflowException(
            f"the driver of {uri.split(':')[0]}, {error.name}, is not installed; "
            "pip install psycopg2-binary, and write postgresql://..."
        ) from error
    with engine.connect() as connection:  # the lock ends with the connection
        connection.execute(text(f"SET lock_timeout = '{CREATE_SECONDS}s'"))
        connection.execute(text("SELECT pg_advisory_lock(hashtext('skillpress'))"))
        yield


def _experiment(artifacts: str | None) -> str:
    client = MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    return client.create_experiment(name, artifact_location=artifacts and f"{artifacts}/{name}")


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` and value of nested parameters."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class StageRun:
    """The nested run of one stage of one experiment."""

    def __init__(self, stage: str, params: Params, key: str) -> None:
        """Find or create the experiment's run, and the stage's below it.

        Args:
            key: of all that decides the stage's result.
        """
        self._params, self._stage = params, stage
        self._experiment_id = create_database()
        self._client = MlflowClient()
        self.parent_id = self._parent(params)
        self.run_id = self._nested(stage, pipeline_run_id(params), key)
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

    def log_episodes(self, rollouts: str | Path, policy: str | Path, most: int) -> None:
        """Record a sample of a file's episodes as traces.

        Args:
            policy: a folder with the tokenizer of those that played.
            most: episodes at most.
        """
        record = StageRecord(self._experiment_id, self.run_id, self._stage)
        log_traces(record, Path(rollouts), Path(policy), most)

    def register_policy(self, folder: str | Path) -> None:
        """Register a model folder as a new version of ``skillpress-<environment>``."""
        register_policy(self.run_id, self._params, Path(folder))

    def log_parts(self, parts: Mapping[str, str]) -> None:
        """Tag the run with the parts that the experiment names: parameter to class or function, with the
        package and version that it comes from."""
        tags = [RunTag(f"{PART}{parameter}", part) for parameter, part in parts.items()]
        self._client.log_batch(self.run_id, tags=[*tags, RunTag(VERSION, __version__)])

    def log_error(self, trace: str) -> None:
        """Keep the traceback of an error whose message alone is shown."""
        self._client.log_text(self.run_id, without_secrets(trace), "error.txt")

    def finish(self, status: str) -> None:
        """End both runs as ``FINISHED``, ``FAILED`` or ``KILLED``; the parent follows its last stage."""
        for run_id in (self.run_id, self.parent_id):
            self._client.set_terminated(run_id, status)

    def _parent(self, params: Params) -> str:
        identity = pipeline_run_id(params)
        above = os.environ.get(PARENT_VARIABLE)
        found = experiment_run(self._client, self._experiment_id, identity)
        if found is not None:
            if above:
                put_below(self._client, found, above)
            self._client.update_run(found.info.run_id, status="RUNNING")
            return str(found.info.run_id)
        folder = Path.cwd()
        workspace = folder.name if folder.parent.name == "workspaces" else "default"
        tags = {"pipeline_run_id": identity, "level": "experiment", "workspace": workspace}
        tags |= {_PARENT: above} if above else {}
        method = workspace.removesuffix(f"-seed{params.seed}")
        run = self._client.create_run(
            self._experiment_id, tags=tags, run_name=f"{method} seed {params.seed} {identity[:6]}"
        )
        values = [Param(name, str(value)) for name, value in flatten(params.model_dump(mode="json"))]
        self._client.log_batch(run.info.run_id, params=values)
        return str(run.info.run_id)

    def _nested(self, stage: str, identity: str, key: str) -> str:
        own = {_PARENT: self.parent_id, "level": "stage", "dvc.stage": stage, KEY: key}
        tags = {**own, "pipeline_run_id": identity, "dvc.rev": revision()}
        tags |= {f"dvc.dep.{path}": digest for path, digest in data_hashes(stage).items()}
        flow_run = os.environ.get(FLOW_RUN_VARIABLE)
        same = [f"tags.`{name}` = '{value}'" for name, value in own.items()]
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


def experiment_run(client: MlflowClient, experiment_id: str, identity: str) -> Run | None:
    """The run of the experiment with this identity; None where it has recorded nothing."""
    query = f"tags.pipeline_run_id = '{identity}' AND tags.level = 'experiment'"
    found = client.search_runs([experiment_id], query, max_results=1)
    return found[0] if found else None


def put_below(client: MlflowClient, run: Run, parent_id: str) -> None:
    """Have an experiment's run stand below a comparison's in MLflow's pages."""
    if run.data.tags.get(_PARENT) != parent_id:
        client.log_batch(run.info.run_id, tags=[RunTag(_PARENT, parent_id)])
