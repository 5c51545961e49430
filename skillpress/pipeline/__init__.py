"""What connects the library to DVC, MLflow and Prefect: stages, graph, records, workspaces, finished runs.

No other layer imports an orchestrator. Importing this package applies infra/settings.env, before any
orchestrator can be imported.
"""

from skillpress.pipeline import settings

settings.apply()
