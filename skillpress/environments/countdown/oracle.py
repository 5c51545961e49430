"""Demonstrations: a random solution of the puzzle, with some mistakes that are undone immediately.

Without mistakes a policy never learns what ``rollback`` and ``reset`` are for; with many mistakes it learns
to wander (10% gives a policy that plans, 40% one that is close to the random explorer). A mistake is a legal
operation after which no solution is left. The next action undoes it, by rollback or by reset with equal
probability. After a reset the same solution is begun again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.actions import RESET, ROLLBACK, compact_word
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import Pool, Solution, carry_out, solutions, successors


@dataclass(frozen=True)
class CountdownOracle:
    """Solves a task in compact words, never in more than ``max_steps`` of them."""

    section: CountdownParameters

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return the demonstration for this seed.

        Raises:
            TaskError: the task has no solution, or none within ``max_steps``.
        """
        random = Random(seed)
        start: Pool = tuple(sorted(task.spec["numbers"]))
        ways = solutions(start, task.spec["target"], self.section.max_target)
        if not ways or len(start) - 1 > self.section.max_steps:
            raise TaskError(f"task {task.task_id} cannot be solved within {self.section.max_steps} steps")
        way = random.choice(ways)
        pools, words = _replay(start, way, self.section.max_target)
        said: list[str] = []
        done = 0
        while done < len(way):
            mistakes: list[str] = []
            if random.random() < detour_rate:
                mistakes = self._mistakes(pools[done], task.spec["target"])
            undo = random.choice((ROLLBACK, RESET)) if mistakes else ROLLBACK
            resume = done if undo == ROLLBACK else 0
            if mistakes and len(said) + 2 + len(way) - resume <= self.section.max_steps:
                said += [random.choice(mistakes), undo]
                done = resume
            else:
                said.append(words[done])
                done += 1
        return said

    def _mistakes(self, pool: Pool, target: int) -> list[str]:
        """The words of legal operations after which the target is out of reach."""
        return [
            compact_word(operation, pool)
            for operation, left in successors(pool, self.section.max_target)
            if not solutions(left, target, self.section.max_target)
        ]


def _replay(start: Pool, way: Solution, largest: int) -> tuple[list[Pool], list[str]]:
    """The pool before each operation of a solution, and the operation's compact word."""
    pools, words = [], []
    pool = start
    for operation in way:
        pools.append(pool)
        words.append(compact_word(operation, pool))
        left = carry_out(pool, operation, largest)
        assert not isinstance(left, str), "a solution holds legal operations only"
        pool = left
    return pools, words
