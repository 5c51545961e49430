"""Create MLflow's database and the experiment if they are missing."""

from __future__ import annotations

import os

from skillpress.pipeline.redaction import hide_secrets_of_tracebacks, without_secrets
from skillpress.pipeline.tracking.runs import create_database

hide_secrets_of_tracebacks()
create_database()
print(f"tracking database: {without_secrets(os.environ['MLFLOW_TRACKING_URI'])}")
