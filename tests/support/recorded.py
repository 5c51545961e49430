"""MLflow's records of a clone's experiments."""

from __future__ import annotations

from mlflow import MlflowClient
from mlflow.entities import Run

from tests.support.clone import Clone


def tracked(clone: Clone) -> tuple[MlflowClient, list[Run]]:
    """A client, and all runs of the clone's own database."""
    client = MlflowClient(f"sqlite:///{clone.folder}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("skillpress")
    assert experiment is not None
    return client, client.search_runs([experiment.experiment_id])
