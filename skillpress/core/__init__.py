"""The contracts and the basis of everything else: trajectories and their files, names, seeds, errors.

It imports no other wing, and neither torch nor an orchestrator.
"""
