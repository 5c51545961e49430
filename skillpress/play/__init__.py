"""Playing episodes: agents, the collector, vector environments, workers, sandboxes and chat servers.

This package imports ``skills`` and ``core``.
"""
