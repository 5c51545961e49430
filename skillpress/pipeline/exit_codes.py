"""Exit codes of stages and commands: 0 for success, 1 for an error to retry, or one of these."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from skillpress.core.visible import with_codes
from skillpress.pipeline.redaction import without_secrets

USER_ERROR = 2
"""A mistake to correct before the next run: a parameter, a file, the disk. Retrying does not help."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
PIPE_CLOSED = 141
"""The exit code if the reader of the output has ended, as ``head`` does."""


def say(message: object) -> None:
    """Print a line for the user on stderr, without passwords, keys and terminal escapes."""
    print(with_codes(without_secrets(str(message))), file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """End now, with all results on the disk: Python would spend two seconds on releasing torch's modules."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # short output waits in the buffer until here
        code = PIPE_CLOSED
    os._exit(code)
