"""Engines, which sample responses: each satisfies ``interface.Engine``."""
