"""A lock with which one thread at a time builds syntax trees.

CPython 3.11 has a single counter, for all threads, of the depth of the tree being built. It raises
SystemError if two threads build one at the same time.
"""

from __future__ import annotations

import threading

PARSING = threading.Lock()
"""Held while parsing, since environments run in threads."""
