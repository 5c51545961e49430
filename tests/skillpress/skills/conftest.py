"""Compiling at the first call takes seconds; no example of a property is judged by its time."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
