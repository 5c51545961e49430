"""The trained policy as a registered model that MLflow can load (``models:/skillpress-countdown/1``)."""

from __future__ import annotations

import logging
import re
from importlib.metadata import version
from pathlib import Path

import mlflow

from skillpress.experiment.params import Params
from skillpress.pipeline.tracking.identity import pipeline_run_id


def registered_name(params: Params) -> str:
    """``skillpress-<environment>``; MLflow does not allow slashes or colons in the name."""
    return "skillpress-" + re.sub(r"[^\w.-]+", "-", params.environment.title)


def register_policy(run_id: str, params: Params, folder: Path) -> None:
    """Register a model folder as a new version of ``skillpress-<environment>``.

    Raises:
        PolicyError: the folder does not contain a model that can be loaded.
    """
    from skillpress.models.policy import (
        load_policy,  # takes seconds to import, which other stages' recorders skip
    )

    policy = load_policy(folder, params.policy.dtype)
    logging.getLogger("mlflow").setLevel(logging.ERROR)  # it warns about model cards of hub models
    with mlflow.start_run(run_id=run_id):
        mlflow.transformers.log_model(
            transformers_model={"model": policy.model, "tokenizer": policy.tokenizer},
            name="policy",
            task="text-generation",
            pip_requirements=[f"{name}=={version(name)}" for name in ("torch", "transformers")],
            registered_model_name=registered_name(params),
            metadata={"pipeline_run_id": pipeline_run_id(params)},
        )
