"""Formats and protocols of other projects: logs of any agent, exports, OpenEnv, gymnasium, TRL.

It imports ``learn`` and what is below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.doors.formats.atif import write_atif
    from skillpress.doors.formats.hugging_face import write_datasets
    from skillpress.doors.formats.sharegpt import write_sharegpt
    from skillpress.doors.formats.texts import Texts, load_texts
    from skillpress.doors.traces.fields import Wanted, success_field
    from skillpress.doors.traces.log import Log, read_log
    from skillpress.doors.traces.projection import NameProjection
    from skillpress.environments.calls.rules import read_rules

__all__ = [
    "Log",
    "NameProjection",
    "Texts",
    "Wanted",
    "load_texts",
    "read_log",
    "read_rules",
    "success_field",
    "write_atif",
    "write_datasets",
    "write_sharegpt",
]

__getattr__, __dir__ = lazy_names(__name__)
