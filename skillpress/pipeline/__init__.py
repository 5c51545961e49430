"""What connects the library to DVC, MLflow and Prefect: stages, graph, records, workspaces, finished runs.

No other wing imports an orchestrator. Importing this wing applies infra/settings.env, before any orchestrator
can be imported.
"""

from skillpress.pipeline import settings

settings.apply()
