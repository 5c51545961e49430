"""The arithmetic of Countdown: the operations that a pool of numbers allows, and the pools that they leave.

A pool is a sorted tuple of non-negative integers, including duplicates. An operation takes two of them and
puts their result back. Only exact, non-negative results up to the largest allowed number are legal. Every
operation has one canonical form with the larger operand first. The exception is a division of 0: the 0 comes
first, since division by 0 is impossible. A solution is a sequence of canonical operations that uses all the
numbers and ends at the target; two orders of the same independent operations are two solutions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

Pool = tuple[int, ...]
OPERATORS = ("+", "-", "*", "/")
Reason = Literal["unreadable", "no_such_number", "negative", "not_exact", "too_large", "nothing_to_undo"]
"""Why an action changes nothing."""


class Operation(NamedTuple):
    """``op(operator, left, right)``."""

    operator: str
    left: int
    right: int

    def __str__(self) -> str:
        return f"op({self.operator}, {self.left}, {self.right})"


Solution = tuple[Operation, ...]


def canonical(operator: str, small: int, large: int) -> Operation:
    """The canonical form of the operation on two numbers with ``small <= large``."""
    if operator == "/" and small == 0:
        return Operation("/", 0, large)
    return Operation(operator, large, small)


def result(operation: Operation, largest: int) -> int | Reason:
    """The operation's result, or why it is not legal."""
    operator, left, right = operation
    if operator == "+":
        value = left + right
    elif operator == "-":
        value = left - right
        if value < 0:
            return "negative"
    elif operator == "*":
        value = left * right
    elif right == 0 or left % right:
        return "not_exact"
    else:
        value = left // right
    return value if value <= largest else "too_large"


def carry_out(pool: Pool, operation: Operation, largest: int) -> Pool | Reason:
    """The pool after an operation, or why the operation cannot be carried out."""
    rest = list(pool)
    try:
        rest.remove(operation.left)
        rest.remove(operation.right)
    except ValueError:
        return "no_such_number"
    value = result(operation, largest)
    if isinstance(value, str):
        return value
    rest.append(value)
    rest.sort()
    return tuple(rest)


def results(small: int, large: int) -> tuple[int, int, int, int | None]:
    """The results of the canonical operations on ``small <= large`` in the order of ``OPERATORS``, however
    large; None for a division that is not exact. For speed in searches it makes no :class:`Operation`."""
    quotient = None
    if small == 0:
        quotient = 0 if large else None
    elif large % small == 0:
        quotient = large // small
    return large + small, large - small, large * small, quotient


def successors(pool: Pool, largest: int) -> list[tuple[Operation, Pool]]:
    """Every legal operation in canonical form with the pool that it leaves, each once, in slot order."""
    found: dict[Operation, Pool] = {}
    for j in range(1, len(pool)):
        for i in range(j):
            rest = pool[:i] + pool[i + 1 : j] + pool[j + 1 :]
            for operator, value in zip(OPERATORS, results(pool[i], pool[j]), strict=True):
                if value is not None and value <= largest:
                    found[canonical(operator, pool[i], pool[j])] = tuple(sorted((*rest, value)))
    return list(found.items())


@lru_cache(maxsize=1 << 16)
def solutions(pool: Pool, target: int, largest: int) -> tuple[Solution, ...]:
    """Every distinct solution from this sorted pool, in a fixed order; empty if there is none.

    The search is depth first and caches each pool, since different operations often leave the same one.
    """
    if len(pool) == 1:
        return ((),) if pool[0] == target else ()
    if len(pool) == 2:
        return _last(pool, target) if target <= largest else ()
    return tuple(
        (operation, *rest)
        for operation, left in successors(pool, largest)
        for rest in solutions(left, target, largest)
    )


def _last(pool: Pool, target: int) -> tuple[Solution, ...]:
    """The operations on two numbers that give the target."""
    values = zip(OPERATORS, results(*pool), strict=True)
    return tuple((canonical(operator, *pool),) for operator, value in values if value == target)
