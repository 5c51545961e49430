"""Reproduces an experiment: workspaces, their locks, calling DVC, and the dry run."""
