"""Formats and protocols of other projects: exports, OpenEnv, MCP, gymnasium, TRL.

It imports ``experiment`` and what is below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.integrations.formats.atif import write_atif
    from skillpress.integrations.formats.hugging_face import write_datasets
    from skillpress.integrations.formats.sharegpt import write_sharegpt
    from skillpress.integrations.formats.texts import Texts, load_texts

__all__ = ["Texts", "load_texts", "write_atif", "write_datasets", "write_sharegpt"]

__getattr__, __dir__ = lazy_names(__name__)
