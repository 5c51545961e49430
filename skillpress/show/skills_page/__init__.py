"""A page on the skills that an agent's log shows; it describes, and no stage of an experiment reads it."""

from __future__ import annotations
