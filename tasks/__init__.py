"""The versioned stages, one module each, and the glue that ties them to DVC and MLflow.

Importing this package applies infra/settings.env, before any of the orchestrators can be imported.
"""

from tasks import settings

settings.apply()
