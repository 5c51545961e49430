"""Formats and protocols of other projects: logs of any agent, exports, OpenEnv, gymnasium, TRL.

It imports ``learn`` and what is below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.doors.formats.atif import write_atif
    from skillpress.doors.formats.hugging_face import write_datasets
    from skillpress.doors.formats.sharegpt import write_sharegpt
    from skillpress.doors.formats.texts import Texts, load_texts
    from skillpress.doors.traces.fields import Wanted, success_field
    from skillpress.doors.traces.log import Log, read_log
    from skillpress.doors.traces.projection import NameProjection
    from skillpress.doors.traces.rules import read_rules

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

_MODULES = {
    "Log": "traces.log",
    "NameProjection": "traces.projection",
    "Texts": "formats.texts",
    "Wanted": "traces.fields",
    "load_texts": "formats.texts",
    "read_log": "traces.log",
    "read_rules": "traces.rules",
    "success_field": "traces.fields",
    "write_atif": "formats.atif",
    "write_datasets": "formats.hugging_face",
    "write_sharegpt": "formats.sharegpt",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
