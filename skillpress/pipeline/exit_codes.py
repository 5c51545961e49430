"""Exit codes of stages and commands: 0 for success, or one of these."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

from skillpress.core.redaction import without_secrets
from skillpress.core.visible import with_codes

_LOG = logging.getLogger("skillpress")

USER_ERROR = 2
"""A mistake to correct before the next run: a parameter, a file, the disk. Retrying does not help."""
RETRY = 1
"""An error that another attempt may not have."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
PIPE_CLOSED = 141
"""The exit code if the reader of the output has ended, as ``head`` does."""


def say(message: object) -> None:
    """Tell the user an error, without passwords, keys and terminal escapes."""
    # Above CRITICAL: after Ctrl-C, flows silence what threads log about the processes that end.
    _LOG.log(logging.CRITICAL + 1, "%s", with_codes(without_secrets(str(message))))


def ended(well: bool, message: str) -> int:
    """Print the result of a run that ended well, or else its error; returns the exit code."""
    if not well:
        say(message)
        return USER_ERROR
    print(without_secrets(message))
    return 0


def leave(code: int) -> NoReturn:
    """End at once, because Python would spend two seconds on releasing torch's modules."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # short output waits in the buffer until here
        code = PIPE_CLOSED
    os._exit(code)
