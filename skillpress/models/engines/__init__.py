"""Engines, which sample responses: each satisfies ``engine.Engine``."""
