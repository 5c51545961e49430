"""What the library says apart from its results: the standard module's logging, as plain lines on stderr.

Modules write to ``logging.getLogger("skillpress...")``. Each process that this library starts calls
:func:`set_up` once. ``SKILLPRESS_LOG`` is the least level that is shown; child processes inherit it.
Passwords, keys and terminal escapes are removed from every line.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from skillpress.core.errors import ParamsError
from skillpress.core.redaction import without_secrets
from skillpress.core.visible import with_codes

VARIABLE = "SKILLPRESS_LOG"
LEVELS = ("debug", "info", "warning", "error")
OPTIONS = {"--verbose": "debug", "--quiet": "error"}
"""Options of a command to the level that they ask for."""


class _Lines(logging.Handler):
    """Prints messages as plain lines on the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message above the progress bar."""
        line = with_codes(without_secrets(self.format(record)))
        if (bars := getattr(sys.modules.get("tqdm"), "tqdm", None)) is not None:
            bars.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr)
        sys.stderr.flush()


def set_up() -> None:
    """Show the messages of this process, from the level of ``SKILLPRESS_LOG`` on.

    Raises:
        ParamsError: the variable names no level. Messages are shown from ``info`` on.
    """
    logger, level = logging.getLogger("skillpress"), os.environ.get(VARIABLE) or "info"
    logger.handlers = [_Lines()]
    logger.propagate = False  # Prefect and MLflow print what reaches the root
    logger.setLevel(level.upper() if level in LEVELS else "INFO")
    if level not in LEVELS:
        raise ParamsError(f"{VARIABLE}: is {level!r}, must be one of {', '.join(LEVELS)}")


def without_options(words: Sequence[str]) -> list[str]:
    """A command line without ``--verbose`` and ``--quiet``, which set ``SKILLPRESS_LOG`` for this process and
    its children. The last one counts. Words after ``--`` belong to another program."""
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        if word in OPTIONS:
            os.environ[VARIABLE] = OPTIONS[word]
    return [word for word in own if word not in OPTIONS] + list(words[len(own) :])
