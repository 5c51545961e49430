"""Prefect flows: when stages run, with which parameters, and what happens if one fails."""

import sys

from flows import secret
from skillpress.core.errors import UserError
from skillpress.core.http_clients import check_variables
from skillpress.core.log_lines import set_up
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.pipeline import settings
from skillpress.pipeline.exit_codes import USER_ERROR, say

settings.apply_all()  # before Prefect is imported
hide_secrets_of_tracebacks()  # before the imports of a flow, which take seconds
secret.apply()
try:
    set_up()
    check_variables()  # Prefect's clients stop at such a variable with a traceback that does not name it
except UserError as error:
    say(error)
    sys.exit(USER_ERROR)
