"""How a stage or command tells its caller what happened: 0 is done, 1 is a bug, and these."""

USER_ERROR = 2
"""Something to put right before the next run: a parameter, a file, the disk. Retrying does not help."""
INTERRUPTED = 130
"""Ctrl-C."""
