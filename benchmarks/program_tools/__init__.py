"""A tool-using program that learns from its own successes: see ``__main__.py``."""
