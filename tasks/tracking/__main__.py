"""``python -m tasks.tracking``: create MLflow's database and the experiment where they are missing."""

from __future__ import annotations

import os

from tasks.tracking.runs import create_database

create_database()
print(f"tracking database: {os.environ['MLFLOW_TRACKING_URI']}")
