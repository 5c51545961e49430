"""Countdown-Stepwise (ReuseRL, appendix D): make the target from all the numbers, step by step.

The state consists of a sorted pool of numbers, a stack of the previous pools, and a step count. An operation
replaces two numbers by their result; ``rollback`` undoes the last operation and ``reset`` undoes all of them.
The task is won when the pool is exactly the target. It is lost as *stuck* by an operation or an unreadable
action while fewer than two numbers are left, and cut off after T steps. Any other action that cannot be
carried out costs its step and changes nothing.

Choices that the paper leaves open: ``rollback`` and ``reset`` with nothing to undo are invalid
(``nothing_to_undo``), and a reset cannot itself be rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from string import printable
from typing import overload

from gymnasium.spaces import Space, Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.actions import RESET, ROLLBACK, read_operation
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import Pool, Reason, carry_out, successors

_EXPLANATIONS: dict[Reason, str] = {
    "unreadable": "that is not an action",
    "no_such_number": "the pool does not hold these numbers",
    "negative": "the result would be negative",
    "not_exact": "the division is not exact",
    "too_large": "the result would be too large",
    "nothing_to_undo": "there is nothing to undo",
}


@dataclass(frozen=True, slots=True)
class CountdownState:
    """What a rendering may show."""

    target: int
    pool: Pool
    """The numbers left, ascending."""
    steps: int
    """Number of steps taken so far."""


class AdmissibleActions(Sequence[str]):
    """The actions that a state allows, computed at the first access: computing them takes longer than a
    step."""

    def __init__(self, pool: Pool, undoable: bool, largest: int) -> None:
        self._pool, self._undoable, self._largest = pool, undoable, largest

    @cached_property
    def _list(self) -> tuple[str, ...]:
        operations = [str(operation) for operation, _ in successors(self._pool, self._largest)]
        return (*operations, *((ROLLBACK, RESET) if self._undoable else ()))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._list[index]

    def __len__(self) -> int:
        return len(self._list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._list == tuple(other)

    def __hash__(self) -> int:
        return hash(self._list)

    def __repr__(self) -> str:
        return repr(self._list)


class Countdown:
    """One puzzle at a time; ``task.spec`` holds ``target`` and ``numbers``."""

    action_space: Space[str] = Text(max_length=64, min_length=0, charset=printable)
    observation_space: Space[str] = Text(max_length=256, charset=printable)

    def __init__(self, parameters: CountdownParameters) -> None:
        self._max_steps = parameters.max_steps
        self._largest = parameters.max_target
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the puzzle.

        Raises:
            KeyError: ``task.spec`` is not a Countdown puzzle.
        """
        self._target: int = task.spec["target"]
        self._pool: Pool = tuple(sorted(task.spec["numbers"]))
        self._undo: list[Pool] = []
        self._steps = 0
        self._over = False
        return f"Target: {self._target}. {self._observe(None)}", self._info(False, None, None, None)

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Carry out an action in either wording (see ``actions.py``)."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        text = action.strip()
        lost = None
        wording: str | None
        if text in (ROLLBACK, RESET):
            wording, invalid = text, self._take_back(text)
        else:
            lost = "stuck" if len(self._pool) < 2 else None
            wording, invalid = self._operate(text)
        won = len(self._pool) == 1 and self._pool[0] == self._target
        terminated = won or lost is not None
        truncated = not terminated and self._steps >= self._max_steps
        self._over = terminated or truncated
        return self._observe(invalid), terminated, truncated, self._info(won, lost, wording, invalid)

    def _take_back(self, text: str) -> Reason | None:
        if not self._undo:
            return "nothing_to_undo"
        if text == ROLLBACK:
            self._pool = self._undo.pop()
        else:
            self._pool = self._undo[0]
            self._undo.clear()
        return None

    def _operate(self, text: str) -> tuple[str | None, Reason | None]:
        operation = read_operation(text, self._pool)
        if isinstance(operation, str):
            return None, operation
        left = carry_out(self._pool, operation, self._largest)
        if isinstance(left, str):
            return str(operation), left
        self._undo.append(self._pool)
        self._pool = left
        return str(operation), None

    def _observe(self, invalid: Reason | None) -> str:
        numbers = "Numbers: " + " ".join(map(str, self._pool))
        return numbers if invalid is None else f"Nothing happens: {_EXPLANATIONS[invalid]}. {numbers}"

    def _info(self, won: bool, lost: str | None, wording: str | None, invalid: Reason | None) -> Info:
        admissible = AdmissibleActions(self._pool, bool(self._undo), self._largest)
        state = CountdownState(self._target, self._pool, self._steps)
        return Info(
            won=won,
            lost=lost,
            action=wording,
            invalid=invalid,
            admissible=admissible,
            state=state,
            state_key=" ".join(map(str, self._pool)),  # without the step count and the past pools
        )


def explorer_actions(info: Info) -> Sequence[str]:
    """The legal operations or, if there are none, ``reset``."""
    operations = [action for action in info.admissible if action not in (ROLLBACK, RESET)]
    return operations or (RESET,)
