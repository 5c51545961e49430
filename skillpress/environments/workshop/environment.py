"""The workshop: a piece is made by the routine of its order, or by a shortcut of this piece or its mark.

The order lists sub-goals. For each of them the worker goes to the room of its tool, takes the tool and works
on the piece. When all are done, in their order, delivering the piece wins. The map is the same in all tasks,
and the environment never tells it.

Some pieces have a shortcut, a list of actions of the machine, which wins by itself, whatever was done before.
The first action of the machine puts the piece into it. From then on any action except a right next one breaks
the piece, and the task is lost (``broken``). A wrong first action breaks it too. Any other action that cannot
be carried out costs its step and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from string import printable
from typing import Literal

from gymnasium.spaces import Space, Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import (
    HALL,
    ROOMS,
    TOOLS,
    Action,
    Machine,
    machine_actions,
    read_action,
    routine_actions,
)
from skillpress.environments.workshop.parameters import WorkshopParameters

Reason = Literal[
    "unreadable", "already_there", "not_here", "already_held", "not_next", "no_tool", "not_finished"
]
"""Why an action changes nothing."""
BROKEN = "broken"
_EXPLANATIONS: dict[Reason, str] = {
    "unreadable": "that is not an action",
    "already_there": "you are there already",
    "not_here": "this tool is in another room",
    "already_held": "you hold it already",
    "not_next": "this work is not the next of the order",
    "no_tool": "you do not hold the tool for it",
    "not_finished": "the order is not finished",
}
_MACHINES: tuple[Machine, ...] = ("own", "same", "one")
_OF_MACHINES = frozenset(action.text for machine in _MACHINES for action in machine_actions(machine))


@dataclass(frozen=True, slots=True)
class WorkshopState:
    """What a rendering may show."""

    piece: tuple[str, ...]
    left: tuple[str, ...]
    """The sub-goals that remain, the next one first."""
    room: str
    tool: str | None
    """The tool that is held."""
    machine: tuple[str, ...]
    """The actions done in the machine, in order; empty while the piece is not in it."""
    steps: int
    """Number of steps taken so far."""


class Workshop:
    """One piece at a time; ``task.spec`` holds ``piece``, ``order`` and ``shortcut`` (may be empty)."""

    action_space: Space[str] = Text(max_length=64, min_length=0, charset=printable)
    observation_space: Space[str] = Text(max_length=640, charset=printable)

    def __init__(self, parameters: WorkshopParameters) -> None:
        self._max_steps = parameters.max_steps
        self._machine_kind = parameters.shortcut.skills
        self._free = parameters.shortcut.order == "free"
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start in the hall with nothing in hand.

        Raises:
            KeyError: ``task.spec`` has no piece or no order.
        """
        self._piece: tuple[str, ...] = tuple(task.spec["piece"])
        self._left: tuple[str, ...] = tuple(task.spec["order"])
        self._shortcut: tuple[str, ...] = tuple(task.spec.get("shortcut", ()))
        self._room, self._steps = HALL, 0
        self._tool: str | None = None
        self._machine: tuple[str, ...] = ()
        self._over = False
        wanted = f"Order for the piece {' '.join(self._piece)}: {', '.join(self._left)}."
        return f"{wanted} {self._situation()}", self._info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Carry out an action in either wording (see ``actions.py``)."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        said = read_action(action.strip(), self._machine_kind)
        invalid: Reason | None = None if said is not None else "unreadable"
        lost = won_by = None
        if self._machine or (said is not None and said.kind == "machine"):
            if self._fits(said):
                assert said is not None, "an unreadable action does not fit"
                self._machine += (said.thing,)
                won_by = "by_shortcut" if len(self._machine) == len(self._shortcut) else None
            else:
                lost = BROKEN
        elif said is not None:
            invalid = self._work(said)
            won_by = "by_routine" if said.kind == "deliver" and invalid is None else None
        terminated = won_by is not None or lost is not None
        truncated = not terminated and self._steps >= self._max_steps
        self._over = terminated or truncated
        wording = None if said is None else said.text
        return (
            self._observe(won_by, lost, invalid),
            terminated,
            truncated,
            self._info(won_by, lost, wording, invalid),
        )

    def _fits(self, said: Action | None) -> bool:
        """Whether the machine does this next without breaking the piece."""
        if said is None or said.kind != "machine":
            return False
        if self._free:
            return Counter(self._machine)[said.thing] < Counter(self._shortcut)[said.thing]
        return said.thing in self._shortcut[len(self._machine) :][:1]

    def _work(self, said: Action) -> Reason | None:
        """Carry out an action of the routine; return the reason if that is impossible."""
        if said.kind == "go":
            if said.thing == self._room:
                return "already_there"
            self._room = said.thing
        elif said.kind == "take":
            if said.thing == self._tool:
                return "already_held"
            if ROOMS[said.thing] != self._room:
                return "not_here"
            self._tool = said.thing
        elif said.kind == "work":
            if said.thing not in self._left[:1]:
                return "not_next"
            if self._tool != TOOLS[said.thing]:
                return "no_tool"
            self._left = self._left[1:]
        elif self._left:
            return "not_finished"
        return None

    def _situation(self) -> str:
        if self._machine:
            return f"The piece is in the machine, after: {', '.join(self._machine)}."
        todo = ", ".join(self._left) or "deliver"
        return f"You are in the {self._room} and hold {self._tool or 'nothing'}. To do: {todo}."

    def _observe(self, won_by: str | None, lost: str | None, invalid: Reason | None) -> str:
        if lost is not None:
            return "The machine breaks the piece."
        if won_by is not None:
            return "The piece is finished and delivered."
        said = "" if invalid is None else f"Nothing happens: {_EXPLANATIONS[invalid]}. "
        return said + self._situation()

    def _info(
        self,
        won_by: str | None = None,
        lost: str | None = None,
        wording: str | None = None,
        invalid: Reason | None = None,
    ) -> Info:
        machine = tuple(sorted(self._machine)) if self._free else self._machine
        return Info(
            won=won_by is not None,
            lost=lost,
            action=wording,
            invalid=invalid,
            admissible=admissible(
                self._room, self._tool, self._left[:1], self._machine_kind, bool(self._machine)
            ),
            measures={name: float(name == won_by) for name in WorkshopParameters.measures}
            if self._over
            else {},
            state=WorkshopState(
                piece=self._piece,
                left=self._left,
                room=self._room,
                tool=self._tool,
                machine=self._machine,
                steps=self._steps,
            ),
            state_key=f"{len(self._left)} {self._room} {self._tool} {', '.join(machine)}",
        )


@cache
def admissible(
    room: str, tool: str | None, following: tuple[str, ...], machine: Machine, inside: bool
) -> tuple[str, ...]:
    """Every action that changes something. Actions of the machine always do: they continue the shortcut or
    break the piece.

    Args:
        following: the next sub-goal; empty if all are done.
        inside: whether the piece is in the machine. Then actions of the routine only break it and are not
            listed.
    """
    machines = tuple(action.text for action in machine_actions(machine))
    if inside:
        return machines
    possible: dict[str, Callable[[str], bool]] = {
        "go": lambda thing: thing != room,
        "take": lambda thing: thing != tool and ROOMS[thing] == room,
        "work": lambda thing: (thing,) == following and TOOLS[thing] == tool,
        "deliver": lambda thing: not following,
    }
    routine = (action.text for action in routine_actions() if possible[action.kind](action.thing))
    return (*routine, *machines)


def explorer_actions(info: Info) -> Sequence[str]:
    """The possible actions of the routine, or the machine's while the piece is in it.

    The machine breaks nearly every piece, so the explorer does not begin to use it.
    """
    return tuple(action for action in info.admissible if action not in _OF_MACHINES) or info.admissible
