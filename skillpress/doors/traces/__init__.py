"""Logs of agents that somebody else wrote, as sequences of skills.

A *trace* is one run of an agent: what it did, step by step, and how it ended where the log says so. There
is one file per format (``atif.py``, ``chat.py``, ``mlflow_traces.py``, ``rollouts.py``), and a record is
told by its content, not by its file's name. ``projection.py`` gives every step a skill, by the tool that
was called or by a table of rules. ``log.py`` reads files one trace at a time and keeps skills alone, so
that a log may be much larger than the memory.
"""

from __future__ import annotations
