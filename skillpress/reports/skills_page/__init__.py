"""A page on the skills in an agent's log. It describes; no stage of an experiment reads it."""

from __future__ import annotations
