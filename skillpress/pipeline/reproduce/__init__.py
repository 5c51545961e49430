"""Reproducing an experiment: workspaces, their locks, the call of DVC, and the dry run."""
