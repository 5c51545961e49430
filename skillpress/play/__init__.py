"""How episodes are played: agents, the collector, vector environments, workers, sandboxes, chat servers.

It imports ``skills`` and ``core``.
"""
