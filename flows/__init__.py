"""Prefect flows: when stages run, with which parameters, and what happens if one fails."""

import skillpress.pipeline  # noqa: F401  (applies infra/settings.env before Prefect is imported)
from flows import secret
from skillpress.pipeline.redaction import hide_secrets_of_tracebacks

hide_secrets_of_tracebacks()  # before the imports of a flow, which take seconds
secret.apply()
