"""The trained policy as a registered model that MLflow can load (``models:/skillpress-countdown/1``)."""

from __future__ import annotations

import logging
from importlib.metadata import version

from tasks.stage import Stage


def register_policy(stage: Stage) -> None:
    """Register models/policy as a new version of ``skillpress-<environment>``."""
    import mlflow

    from skillpress.policy import load_policy
    from tasks.data import POLICY
    from tasks.tracking import pipeline_run_id

    policy = load_policy(POLICY, stage.params.policy.dtype)
    logging.getLogger("mlflow").setLevel(logging.ERROR)  # it warns about model cards of hub models
    with mlflow.start_run(run_id=stage.run.run_id):
        mlflow.transformers.log_model(
            transformers_model={"model": policy.model, "tokenizer": policy.tokenizer},
            name="policy",
            task="text-generation",
            pip_requirements=[f"{name}=={version(name)}" for name in ("torch", "transformers")],
            registered_model_name=f"skillpress-{stage.params.environment.name}",
            metadata={"pipeline_run_id": pipeline_run_id(stage.params)},
        )
