"""Find all solutions of a puzzle.

A solution is a sequence of canonical operations that uses all the numbers and ends at the target; two orders
of the same independent operations are two solutions. The search visits the pools depth first and caches the
solutions of each pool, since different operations often leave the same pool. With two numbers left, it only
compares the four results with the target.
"""

from __future__ import annotations

from functools import lru_cache

from skillpress.environments.countdown.rules import OPERATORS, Operation, Pool, canonical, results, successors

Solution = tuple[Operation, ...]


@lru_cache(maxsize=1 << 16)
def solutions(pool: Pool, target: int, largest: int) -> tuple[Solution, ...]:
    """Every distinct solution from this sorted pool, in a fixed order; empty if there is none."""
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
