"""The MLflow run of a comparison of experiments; the runs of its experiments are its children.

The processes of the experiments find it by an environment variable. If all stages of an experiment were
restored from DVC's cache, the experiment records nothing. So when it is done, the run that it made earlier is
moved below this one. A comparison that was killed and started again continues in its own run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Param, RunTag

from skillpress.core.resume import content_key
from skillpress.experiment.params import Params
from skillpress.pipeline.revision import revision
from skillpress.pipeline.tracking.runs import (
    KEY,
    PARENT_VARIABLE,
    create_database,
    end_run,
    experiment_run,
    first_run,
    pipeline_run_id,
    put_below,
    summarize,
)


@dataclass(frozen=True)
class ComparisonRun:
    """A run that exists from the start of the comparison."""

    run_id: str
    experiment_id: str

    def adopt(self, params: Params) -> None:
        """Move the run of a finished experiment below this one, wherever it was."""
        client = MlflowClient()
        found = experiment_run(client, self.experiment_id, pipeline_run_id(params))
        if found is not None:
            put_below(client, found, self.run_id)

    def log(self, metrics: Mapping[str, float], files: Iterable[Path]) -> None:
        """Log the results, with their pages."""
        client = MlflowClient()
        summarize(client, self.run_id, metrics)
        for path in files:
            client.log_artifact(self.run_id, str(path))


@contextmanager
def comparison_run(name: str, parameters: Mapping[str, Any], flow_run: str = "") -> Iterator[ComparisonRun]:
    """The run, which ends with the block; experiments started inside the block find it.

    Args:
        parameters: what is compared. An unfinished run with the same parameters is continued.
        flow_run: Prefect's name of the comparing flow.
    """
    client, experiment_id = MlflowClient(), create_database()
    key = content_key({"comparison": name, **parameters}, [])
    unfinished = f"tags.`{KEY}` = '{key}' AND attributes.status != 'FINISHED'"
    found = first_run(client, experiment_id, unfinished)
    if found is not None:
        run_id = str(found.info.run_id)
        client.update_run(run_id, status="RUNNING")
    else:
        tags = {"level": "comparison", "dvc.rev": revision(), KEY: key}
        run_id = str(client.create_run(experiment_id, tags=tags, run_name=name).info.run_id)
        client.log_batch(run_id, params=[Param(key, str(value)) for key, value in parameters.items()])
    if flow_run:
        client.log_batch(run_id, tags=[RunTag("prefect.flow_run_id", flow_run)])
    os.environ[PARENT_VARIABLE] = run_id
    status = "FAILED"
    try:
        yield ComparisonRun(run_id, experiment_id)
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        os.environ.pop(PARENT_VARIABLE, None)
        end_run(client, run_id, status)
