"""Results in MLflow: one run per experiment, and one nested run per stage. The experiments of an ablation are
children of its run (``comparison_run.py``).

The parent is found by a tag, ``pipeline_run_id``, which is the hash of the resolved parameters. So the
stages, which are separate processes, need not tell each other its id. A stage that was killed continues in
its own unfinished run. Its folder keeps the id of that run (``recorder.py``), since another clone may do the
same work at the same time. The run must have the stage's ``skillpress.key``, the hash of all that affects the
stage's result (code, inputs, parameters); otherwise the stage gets a new run. Further tags connect a run with
DVC's graph (``dvc.stage``, ``dvc.rev``, one ``dvc.dep.*`` per data input) and with Prefect
(``prefect.flow_run_id``).

``python -m skillpress.pipeline.tracking`` creates the database. Processes that would create it at the same
time take turns; otherwise their migrations would crash each other. Artifacts are files: next to an SQLite
database, or under ``MLFLOW_DEFAULT_ARTIFACT_ROOT`` if ``MLFLOW_TRACKING_URI`` names a PostgreSQL database.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from skillpress.core.errors import UserError
from skillpress.core.long_work import importing
from skillpress.core.redaction import without_secrets
from skillpress.core.storage import make_folder, make_private_file, named_disk_errors
from skillpress.core.unneeded import unneeded
from skillpress.core.version import __version__
from skillpress.core.yaml_files import read_yaml_file
from skillpress.evaluation.paper.methods import flatten, method
from skillpress.experiment.params import Params
from skillpress.pipeline.revision import revision
from skillpress.pipeline.tracking.episode_trace import StageRecord, log_traces
from skillpress.pipeline.tracking.mirrors import MIRRORS, Mirrored, trackers

EXPERIMENT = "skillpress"
KEY = "skillpress.key"
"""The tag for the hash of all that affects a stage's result."""
PART = "skillpress.part."
"""Prefix of the tags that name the parts of an experiment."""
VERSION = "skillpress.version"
FLOW_RUN_VARIABLE = "SKILLPRESS_FLOW_RUN_ID"
"""The variable in which a flow passes its id to the stages that it starts."""
PARENT_VARIABLE = "SKILLPRESS_PARENT_RUN_ID"
"""The variable in which a comparison passes its run to the experiments that it starts."""
_PARENT = "mlflow.parentRunId"
"""MLflow's own tag for the parent of a run."""
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql"
README = "README.md"
"""The only file of ``mlruns/`` before its first use."""
LONGEST_NAME = 200
"""A run's name has at most this many characters of the method; PostgreSQL keeps 250 of the full name."""
NO_DATABASE = "file is not a database"
"""SQLite's error for a file that it did not write."""
CREATE_SECONDS = 300
"""Another process may take at most this long to create PostgreSQL's tables."""


class TrackingDatabaseError(UserError, MlflowException):
    """MLflow's database or server cannot be used; the message names its variable and its address."""


def create_database() -> str:
    """The experiment's id, made with its database if missing; or ``TrackingDatabaseError``."""
    uri = os.environ["MLFLOW_TRACKING_URI"]
    try:
        if "@" in uri:
            check_database(uri)
        return _created(uri)
    except (MlflowException, SQLAlchemyError, ValueError, UserError, OSError) as error:
        why = without_secrets(str(error).partition("\n")[0])
        if NO_DATABASE in why:
            why = (
                f"{without_secrets(uri)} is not an SQLite database; name another file, or move that one away"
            )
        raise TrackingDatabaseError(f"MLFLOW_TRACKING_URI cannot be used: {why}") from None


def check_database(uri: str) -> None:
    """Raise ``ValueError`` for an address that cannot be parsed: libraries' messages show passwords."""
    try:
        make_url(uri)
    except (ArgumentError, ValueError):
        raise ValueError(
            "it must be an address such as postgresql://user:password@host/name; in a password write "
            "/ as %2F, : as %3A, @ as %40"
        ) from None


def _created(uri: str) -> str:
    if uri.startswith(_SQLITE):
        file = Path(uri.removeprefix(_SQLITE)).resolve()
        if file.is_dir():  # MLflow would try again for minutes
            raise ValueError(f"{file} is a folder; name a file in it, such as {_SQLITE}{file}/mlflow.db")
        folder = file.parent
        make_folder(folder, private=True)  # artifacts, such as episodes, lie beside it
        if {each.name for each in folder.iterdir()} == {README}:
            folder.chmod(0o700)  # git made it, with a mode for everybody
        with named_disk_errors(folder / "create.lock"):
            opened = (folder / "create.lock").open("w")
        with opened as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            make_private_file(file)
            return _experiment(folder.as_uri())
    if uri.startswith(_POSTGRESQL):
        root = os.environ["MLFLOW_DEFAULT_ARTIFACT_ROOT"]
        with _creating(uri):
            return _experiment(root if "://" in root else Path(root).resolve().as_uri())
    return _experiment(None)  # a tracking server itself decides where its artifacts are


@contextmanager
def _creating(uri: str) -> Iterator[None]:
    """The right to create PostgreSQL's tables, which the database grants to one process at a time."""
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


def points(metrics: Mapping[str, float], step: int = 0, after: int = 0) -> list[Metric]:
    """Metrics as MLflow stores them, with the present time, or that after ``after`` if it is later, in ms."""
    now = max(_now(), after + 1)
    return [Metric(name, float(value), now, step) for name, value in metrics.items()]


def summarize(client: MlflowClient, run_id: str, metrics: Mapping[str, float]) -> None:
    """Log final figures in place of earlier ones. MLflow shows the figure with the latest time, and the clock
    may have been set back since."""
    known = client.get_run(run_id).data.metrics.keys() & metrics.keys()
    logged = (point.timestamp for name in known for point in client.get_metric_history(run_id, name))
    client.log_batch(run_id, metrics=points(metrics, after=max(logged, default=0)))


def end_run(client: MlflowClient, run_id: str, status: str) -> None:
    """End a run, not before its beginning, though the clock may have been set back meanwhile."""
    begun = client.get_run(run_id).info.start_time
    client.set_terminated(run_id, status, max(_now(), begun))


def _now() -> int:
    return time.time_ns() // 1_000_000


class StageRun:
    """The nested run of one stage of one experiment."""

    def __init__(self, stage: str, params: Params, key: str, unfinished: str | None = None) -> None:
        """Find or create both runs.

        Args:
            key: a hash of all that affects the stage's result.
            unfinished: the id of the run in which a killed predecessor worked in this folder.
        """
        self._params, self._stage = params, stage
        self._experiment_id = create_database()
        self._client = MlflowClient()
        self.parent_id = self._parent(params)
        self.run_id = self._nested(stage, pipeline_run_id(params), key, unfinished)
        self._logged_until: int | None = None
        mirrored = Mirrored(_run_name(params), stage, self.run_id, _flat(params))
        self._mirrors = [MIRRORS[name](mirrored) for name in trackers()]

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Log all metrics of a step in one call; a resumed stage does not log a step twice."""
        if step and step <= self._last_logged(next(iter(metrics))):
            return
        self._client.log_batch(self.run_id, metrics=points(metrics, step))
        for mirror in self._mirrors:
            mirror.log(metrics, step)

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        """Log final figures, also to the experiment's own run, where experiments are compared."""
        for run_id in (self.run_id, self.parent_id):
            summarize(self._client, run_id, metrics)
        for mirror in self._mirrors:
            mirror.log(metrics, 0)

    def log_file(self, path: str | Path) -> None:
        """Keep a file as an artifact, also in the experiment's own run."""
        for run_id in (self.run_id, self.parent_id):
            self._client.log_artifact(run_id, str(path))

    def log_episodes(self, rollouts: str | Path, policy: str | Path, most: int) -> None:
        """Record ``most`` episodes as traces; ``policy`` is a folder with the player's tokenizer."""
        record = StageRecord(self._experiment_id, self.run_id, self._stage)
        log_traces(record, Path(rollouts), Path(policy), most)

    def register_policy(self, folder: str | Path) -> None:
        """Register a model folder as a new version of ``skillpress-<environment>``; or ``PolicyError``."""
        with importing("torch and transformers"):  # in seconds, which other stages' recorders skip
            from skillpress.models.policy import load_policy

        policy = load_policy(folder, self._params.policy.dtype)
        logging.getLogger("mlflow").setLevel(logging.ERROR)  # it warns about model cards of hub models
        with unneeded("deepspeed"), mlflow.start_run(run_id=self.run_id):
            mlflow.transformers.log_model(
                transformers_model={"model": policy.model, "tokenizer": policy.tokenizer},
                name="policy",
                task="text-generation",
                pip_requirements=[f"{name}=={version(name)}" for name in ("torch", "transformers")],
                registered_model_name=registered_name(self._params),
                metadata={"pipeline_run_id": pipeline_run_id(self._params)},
            )

    def log_parts(self, parts: Mapping[str, str]) -> None:
        """Tag the run with parameter to class or function, with its package and version."""
        tags = [RunTag(f"{PART}{parameter}", part) for parameter, part in parts.items()]
        self._client.log_batch(self.run_id, tags=[*tags, RunTag(VERSION, __version__)])

    def log_error(self, trace: str) -> None:
        """Keep the traceback of an error; the user sees only its message."""
        self._client.log_text(self.run_id, without_secrets(trace), "error.txt")

    def finish(self, status: str) -> None:
        """End both runs as ``FINISHED``, ``FAILED`` or ``KILLED``; the parent gets its last stage's."""
        for run_id in (self.run_id, self.parent_id):
            end_run(self._client, run_id, status)
        self.close(well=status == "FINISHED")

    def close(self, well: bool = False) -> None:
        """Write everything that other trackers still hold; the runs in MLflow stay as they are."""
        for mirror in self._mirrors:
            mirror.finish(well)
        self._mirrors = []

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
        run = self._client.create_run(self._experiment_id, tags=tags, run_name=_run_name(params))
        values = [Param(name, value) for name, value in _flat(params).items()]
        self._client.log_batch(run.info.run_id, params=values)
        return str(run.info.run_id)

    def _nested(self, stage: str, identity: str, key: str, unfinished: str | None) -> str:
        own = {_PARENT: self.parent_id, "level": "stage", "dvc.stage": stage, KEY: key}
        tags = {**own, "pipeline_run_id": identity, "dvc.rev": revision()}
        tags |= {f"dvc.dep.{path}": digest for path, digest in data_hashes(stage).items()}
        flow_run = os.environ.get(FLOW_RUN_VARIABLE)
        if unfinished is not None and self._continues(unfinished, own):
            run_id = unfinished
            self._client.update_run(run_id, status="RUNNING")
        else:
            run_id = self._client.create_run(self._experiment_id, tags=tags, run_name=stage).info.run_id
        if flow_run:
            for run in (run_id, self.parent_id):
                self._client.log_batch(run, tags=[RunTag("prefect.flow_run_id", flow_run)])
        return run_id

    def _continues(self, run_id: str, own: Mapping[str, str]) -> bool:
        """Whether this run is unfinished and has these tags; False if this database does not have it."""
        try:
            run = self._client.get_run(run_id)
        except MlflowException:
            return False
        return run.info.status != "FINISHED" and own.items() <= run.data.tags.items()

    def _last_logged(self, metric: str) -> int:
        if self._logged_until is None:
            try:
                history = self._client.get_metric_history(self.run_id, metric)
            except MlflowException:  # the metric was never logged
                history = []
            self._logged_until = max((point.step for point in history), default=0)
        return self._logged_until


def _run_name(params: Params) -> str:
    """The name of an experiment's run."""
    return f"{method(params).label[:LONGEST_NAME]} seed {params.seed} {pipeline_run_id(params)[:6]}"


def _flat(params: Params) -> dict[str, str]:
    return {name: str(value) for name, value in flatten(params.model_dump(mode="json"))}


def experiment_run(client: MlflowClient, experiment_id: str, identity: str) -> Run | None:
    """The run of the experiment with this identity; None if it has recorded nothing."""
    query = f"tags.pipeline_run_id = '{identity}' AND tags.level = 'experiment'"
    return first_run(client, experiment_id, query)


def first_run(client: MlflowClient, experiment_id: str, query: str) -> Run | None:
    """The first run that MLflow's search finds; None if there is none."""
    found = client.search_runs([experiment_id], query, max_results=1)
    return found[0] if found else None


def put_below(client: MlflowClient, run: Run, parent_id: str) -> None:
    """Make an experiment's run a child of a comparison's run in MLflow's pages."""
    if run.data.tags.get(_PARENT) != parent_id:
        client.log_batch(run.info.run_id, tags=[RunTag(_PARENT, parent_id)])


def data_hashes(stage: str) -> dict[str, str]:
    """Path to DVC hash, for inputs of the stage that are outputs of other stages."""
    dependencies = _read("dvc.yaml").get(stage, {}).get("deps", [])
    made = {
        out["path"]: str(out.get("md5", ""))
        for locked in _read("dvc.lock").values()
        for out in locked.get("outs", [])
    }
    return {path: made[path] for path in dependencies if path in made}


def _read(path: str) -> dict[str, Any]:
    """The ``stages`` of one of DVC's files; empty if there is no file."""
    file = Path(path)
    if not file.exists():
        return {}
    stages: dict[str, Any] = read_yaml_file(file).get("stages", {})
    return stages


def registered_name(params: Params) -> str:
    """``skillpress-<environment>``; MLflow does not allow slashes or colons in the name."""
    return "skillpress-" + re.sub(r"[^\w.-]+", "-", params.environment.title)


def pipeline_run_id(params: Params) -> str:
    """The hash that identifies an experiment, from its resolved parameters including the seed."""
    text = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
