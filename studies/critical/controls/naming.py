"""Other names for the workshop's actions: the same episodes under a φ that is coarser or finer.

A naming has two parts, written ``routine/shortcut``:

- the routine's names. ``one``: Tinker for all actions. ``coarse``: Go, Take, Work and Deliver. ``verb``:
  those of the workshop's φ. ``fine``: one for each action, such as ``go yard``.
- the shortcut's names. ``own``: one for each action. ``one``: Tinker for all. A number m: each action has
  one of m names, so that 1 is ``one``.

``one/one`` is a single name for all that is done. ``verb/own`` is the workshop's φ with ``shortcut.skills:
own``, and ``verb/one`` that with ``one``. Σ always holds the 30 skills of the workshop's φ and those names
that a naming adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from skillpress.environments.text.rules import ActionProjection
from skillpress.environments.workshop.actions import (
    CONTRAPTIONS,
    TINKER,
    Action,
    Machine,
    machine_actions,
    routine_actions,
)
from skillpress.environments.workshop.skills import PROJECTION, skill_of

ROUTINES = ("one", "coarse", "verb", "fine")
"""How a routine's actions can be named."""
_OWN = [skill_of(contraption.partition(" ")[0]) for contraption in CONTRAPTIONS]


class Naming(ActionProjection):
    """A φ for the workshop's actions."""

    def __init__(self, name: str, machine: Machine) -> None:
        """The naming with this name, for shortcuts of this kind.

        Raises:
            ValueError: there is no such naming.
        """
        routine, _, shortcut = name.partition("/")
        if routine not in ROUTINES or not (shortcut in ("own", "one") or shortcut.isdecimal()):
            raise ValueError(
                f"naming is {name!r}, must be one of {', '.join(ROUTINES)}, a slash, and own, one or a number"
            )
        self._routine, self._shortcut, self._machine = routine, shortcut, machine
        self.alphabet = tuple(dict.fromkeys((*PROJECTION.alphabet, *self._names.values())))

    def skill(self, action: str) -> str | None:
        """The name of an action in its canonical wording; None for other words."""
        return self._names.get(action)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Wording to name."""
        machine = machine_actions(self._machine)
        names = {action.text: _of_routine(action, self._routine) for action in routine_actions()}
        return names | _of_shortcut(machine, self._shortcut)


def _of_routine(action: Action, level: str) -> str:
    if level == "fine":
        return action.text
    verb = action.text.partition(" ")[0]
    return skill_of({"one": TINKER, "coarse": action.kind, "verb": verb}[level])


def _of_shortcut(actions: Sequence[Action], level: str) -> dict[str, str]:
    things = list(dict.fromkeys(action.thing for action in actions))
    count = {"own": len(things), "one": 1}.get(level) or int(level)
    names = [skill_of(TINKER)] if count == 1 else [*_OWN, *things[len(_OWN) :]]
    return {action.text: names[things.index(action.thing) % min(count, len(names))] for action in actions}
