"""Prefect flows: when stages run, with which parameters, and what happens if one fails."""

import skillpress.pipeline  # noqa: F401  (applies infra/settings.env before Prefect is imported)
from flows import secret

secret.apply()
