"""Mistakes that the user can correct, apart from all other errors.

A :class:`UserError` names the file, field or option, its value, and what would be right. Trying again would
not help, so a command prints the message alone and exits with 2. Any other exception (a ``ValueError`` of
ours, of torch or of numpy; a locked database; a network disk that does not answer) keeps its traceback and
exits with 1, and the scheduler tries again.
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
"""System error numbers whose cause the user can fix; other errors may disappear by themselves."""


class UserError(Exception):
    """A mistake that the user has to correct before the next run."""


class ParamsError(UserError):
    """Parameters are wrong; the message has one line per mistake."""


class StorageError(UserError):
    """A file cannot be read or written; the message names it and says what would be right."""


class PolicyError(UserError):
    """A model folder or name cannot be used; the message says why and what would be right."""


class TaskError(UserError):
    """The tasks do not fit the experiment: foreign, damaged, overlapping, or too few."""


def is_user_error(error: BaseException) -> bool:
    """Whether the user can correct an error. For system errors the error number decides."""
    return isinstance(error, UserError) or (isinstance(error, OSError) and error.errno in USER_ERRNOS)


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """``"; did you mean 'grpo'?"`` if a known word is similar to this one, else an empty text."""
    wrong, words = str(word).lower(), {str(one).lower(): str(one) for one in known}
    longer = [one for one in words if len(wrong) > 2 and one.startswith(wrong)]
    near = longer or get_close_matches(wrong, words, n=1)
    return f"; did you mean {words[near[0]]!r}?" if near else ""
