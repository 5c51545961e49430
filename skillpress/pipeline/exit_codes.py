"""How a stage or command tells its caller what happened: 0 is done, 1 an error to retry, or one of these."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from skillpress.pipeline.redaction import without_secrets

USER_ERROR = 2
"""Something to put right before the next run: a parameter, a file, the disk. Retrying does not help."""
INTERRUPTED = 130
"""Ctrl-C."""


def say(message: object) -> None:
    """A line for the user, on stderr, without passwords and keys."""
    print(without_secrets(str(message)), file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """End this process now: Python would take torch's modules apart for two seconds first.

    All that a stage made is on the disk by then, and its worker processes have ended.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
