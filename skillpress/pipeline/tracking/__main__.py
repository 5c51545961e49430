"""Create MLflow's database and the experiment if they are missing."""

from __future__ import annotations

import os
import sys

from skillpress.core.errors import UserError
from skillpress.core.log_lines import set_up
from skillpress.core.redaction import hide_secrets_of_tracebacks, without_secrets
from skillpress.pipeline import exit_codes
from skillpress.pipeline.tracking.runs import create_database

hide_secrets_of_tracebacks()
try:
    set_up()
    create_database()
except UserError as error:
    exit_codes.say(error)
    sys.exit(exit_codes.USER_ERROR)
print(f"tracking database: {without_secrets(os.environ['MLFLOW_TRACKING_URI'])}")
