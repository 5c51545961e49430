"""Mistakes that a user can put right, apart from everything else that goes wrong.

A :class:`UserError` names the file, field or option, its value, and what would be right; trying again
changes nothing, so a command prints the message alone and exits with 2. Any other exception (a
``ValueError`` of ours, of torch or of numpy; a locked database; a network disk that does not answer)
keeps its traceback and exits with 1, and the scheduler tries again.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import get_close_matches

USER_ERRNOS = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS,
        errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG,
    }
)  # fmt: skip
"""What the system says of a full disk, a forbidden file or a wrong path. The rest (an I/O error, a
stale handle, a time-out) may pass by itself."""


class UserError(Exception):
    """Something to put right before the next run."""


class ParamsError(UserError):
    """Parameters are wrong; the message has one line per mistake."""


class StorageError(UserError):
    """A file cannot be read or written; the message names it and says what would be right."""


class PolicyError(UserError):
    """A model folder or name cannot be used; the message says why and what would be right."""


class TaskError(UserError):
    """Tasks are not what the experiment needs: foreign, damaged, overlapping, or too few to be had."""


def is_user_error(error: BaseException) -> bool:
    """Whether the user can put it right; for the system's errors their number tells."""
    return isinstance(error, UserError) or (isinstance(error, OSError) and error.errno in USER_ERRNOS)


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """``"; did you mean 'grpo'?"`` where one of the known words is much like this one, else an empty text."""
    wrong, words = str(word).lower(), {str(one).lower(): str(one) for one in known}
    longer = [one for one in words if len(wrong) > 2 and one.startswith(wrong)]
    near = longer or get_close_matches(wrong, words, n=1)
    return f"; did you mean {words[near[0]]!r}?" if near else ""
