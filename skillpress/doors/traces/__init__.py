"""Logs of any agent, as sequences of skills.

A *trace* is one run of an agent: what it did, step by step, and how it ended, if the log tells. There is one
file per format (``atif.py``, ``chat.py``, ``mlflow_traces.py``, ``rollouts.py``). The content of a record
decides its format, not the name of its file. ``projection.py`` gives every step a skill, by the tool that was
called or by a table of rules. ``log.py`` reads files one trace at a time and keeps only the skills, so that a
log may be much larger than the memory.
"""

from __future__ import annotations
