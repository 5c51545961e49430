"""The name of an experiment in MLflow."""

from __future__ import annotations

import hashlib
import json

from skillpress.experiment.params import Params


def pipeline_run_id(params: Params) -> str:
    """The hash that identifies an experiment, from its resolved parameters including the seed."""
    text = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
