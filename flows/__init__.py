"""Prefect flows: when stages run, with which parameters, and what happens if one fails."""

import sys

from flows import secret
from skillpress.core.errors import UserError
from skillpress.core.http_clients import check_variables
from skillpress.pipeline import settings
from skillpress.pipeline.exit_codes import USER_ERROR, say
from skillpress.pipeline.redaction import hide_secrets_of_tracebacks

settings.apply_all()  # before Prefect is imported
hide_secrets_of_tracebacks()  # before the imports of a flow, which take seconds
secret.apply()
try:
    check_variables()  # Prefect's clients stop at such a variable with a traceback that does not name it
except UserError as error:
    say(error)
    sys.exit(USER_ERROR)
