"""The command ``skillpress view``: shows the episodes of a run, an evaluation or a file in a browser."""
