"""What ties the library to DVC, MLflow and Prefect: stages, the graph, records, workspaces, finished runs.

No other wing imports an orchestrator. Importing this one applies infra/settings.env, before any of the
orchestrators can be imported.
"""

from skillpress.pipeline import settings

settings.apply()
