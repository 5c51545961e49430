"""Logs of any agent, as sequences of skills.

A *trace* is one run of an agent: what it did, step by step, and how it ended, if the log tells. There is
one file per family of formats (``formats.py`` lists them). The content of a record decides its format, not
the name of its file. What agents say is written in many dialects: ``messages.py`` makes turns of all of
them, ``conversation.py`` steps of the turns, and ``calls_in_text.py`` finds calls that are written in
words. ``projection.py`` gives every step a skill, by the tool that was called or by a table of rules.
``log.py`` reads files one trace at a time and keeps only the skills, so that a log may be much larger than
the memory.
"""

from __future__ import annotations
