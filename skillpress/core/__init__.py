"""The contracts and what everything else stands on: trajectories and their files, names, seeds, errors.

It imports no other wing, and neither torch nor an orchestrator.
"""
