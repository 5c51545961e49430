"""Viewing episodes: from a run, an evaluation or a file to the viewer's page."""
