"""How a stage or command tells its caller what happened: 0 is done, 1 is a bug, and these."""

import os
import sys
from typing import NoReturn

USER_ERROR = 2
"""Something to put right before the next run: a parameter, a file, the disk. Retrying does not help."""
INTERRUPTED = 130
"""Ctrl-C."""


def leave(code: int) -> NoReturn:
    """End this process now: Python would take torch's modules apart for two seconds first.

    All that a stage made is on the disk by then, and its worker processes have ended.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
