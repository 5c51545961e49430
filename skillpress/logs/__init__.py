"""Logs of any agent, as sequences of skills.

A *trace* is one run of an agent: what it did, step by step, and how it ended, if the log says so. There is
one file per family of formats (``formats.py`` lists them). The content of a record decides its format, not
the name of its file. What agents say is written in many dialects: ``messages.py`` makes turns of all of
them, ``conversation.py`` steps of the turns, and ``calls_in_text.py`` finds calls that are written in
words. ``projection.py`` gives every step a skill, by the tool that was called or by a table of rules.
``log.py`` reads files one trace at a time and keeps only the skills, so that a log may be much larger than
the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.environments.calls.rules import read_rules
    from skillpress.logs.fields import Wanted, success_field
    from skillpress.logs.log import Log, read_log
    from skillpress.logs.projection import NameProjection

__all__ = ["Log", "NameProjection", "Wanted", "read_log", "read_rules", "success_field"]

__getattr__, __dir__ = lazy_names(__name__)
