"""MLflow's and Prefect's records of a clone's experiments."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run

from tests.support.clone import Clone


def tracked(clone: Clone) -> tuple[MlflowClient, list[Run]]:
    """A client, and all runs of the clone's own database."""
    client = MlflowClient(f"sqlite:///{clone.folder}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("skillpress")
    assert experiment is not None
    return client, client.search_runs([experiment.experiment_id])


def recorded(clone: Clone, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query of the clone's Prefect database, which no server need serve."""
    with closing(sqlite3.connect(clone.folder / ".prefect" / "prefect.db")) as database:
        return database.execute(query).fetchall()
