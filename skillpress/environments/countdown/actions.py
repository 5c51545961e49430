"""The two wordings of an action, and how the environment reads them.

Canonical: ``op(+, 80, 28)``, ``rollback``, ``reset``. Compact: one word per action, whose digits are slots of
the pool in ascending order: ``-02`` is the number in slot 2 minus the one in slot 0. Choosing slots instead
of copying numbers lets a small policy act without copying errors.
"""

from __future__ import annotations

import re
from typing import Literal

from skillpress.environments.countdown.rules import OPERATORS, Operation, Pool, canonical

ROLLBACK = "rollback"
RESET = "reset"
MOST_NUMBERS = 5
"""The size of the largest pool. Listing all solutions of a larger one takes too long."""

_OPERATION = re.compile(r"op\(\s*([-+*/])\s*,\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)", re.IGNORECASE)


def compact_words(numbers: int) -> dict[str, tuple[str, int, int]]:
    """Maps each word to (operator, lower slot, higher slot), for pools of up to ``numbers`` numbers."""
    return {
        f"{operator}{i}{j}": (operator, i, j)
        for j in range(1, numbers)
        for i in range(j)
        for operator in OPERATORS
    }


def action_words(numbers: int) -> tuple[str, ...]:
    """Every compact word, including ``rollback`` and ``reset``."""
    return (*compact_words(numbers), ROLLBACK, RESET)


_SLOTS = compact_words(MOST_NUMBERS)


def read_operation(text: str, pool: Pool) -> Operation | Literal["unreadable", "no_such_number"]:
    """The operation that a text in either wording names, in canonical form.

    If the operands of a sum or product are in the wrong order, they are swapped. A difference or quotient
    would then be another operation, so it stays as it was written.
    """
    slots = _SLOTS.get(text)
    if slots is not None:
        operator, i, j = slots
        return canonical(operator, pool[i], pool[j]) if j < len(pool) else "no_such_number"
    match = _OPERATION.fullmatch(text)
    if match is None:
        return "unreadable"
    operator, left, right = match[1], int(match[2]), int(match[3])
    if operator in "+*" and left < right:
        left, right = right, left
    return Operation(operator, left, right)


def compact_word(operation: Operation, pool: Pool) -> str:
    """The compact word of a canonical operation on numbers of this pool."""
    small, large = sorted(operation[1:])
    i = pool.index(small)
    j = pool.index(large, i + 1)
    return f"{operation.operator}{i}{j}"
