"""Demonstrations of two kinds: the routine of a task's order, or the shortcut of its piece.

The seed decides which, by ``shortcut.share``; a task without a shortcut is always done by its routine. Every
``go``, ``take`` and ``deliver`` is drawn among the section's first synonyms. A detour is a needless ``go``
to a wrong room before the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import HALL, PIECE, ROOMS, SYNONYMS, TOOLS, compact_word
from skillpress.environments.workshop.parameters import WorkshopParameters


@dataclass(frozen=True)
class WorkshopOracle:
    """Makes a task's piece in compact words, never in more than ``max_steps`` of them."""

    section: WorkshopParameters

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return the demonstration for this seed.

        Raises:
            TaskError: it takes more than ``max_steps``.
        """
        short = Random(derive(seed, "workshop kind")).random() < self.section.shortcut.share
        if task.spec.get("shortcut") and short:
            actions = shortcut(task, seed, self.section)
        else:
            actions = routine(task, seed, self.section, detour_rate)
        if len(actions) > self.section.max_steps:
            raise TaskError(f"task {task.task_id} cannot be done within {self.section.max_steps} steps")
        return [compact_word(action) for action in actions]


def routine(task: Task, seed: int, section: WorkshopParameters, detour_rate: float = 0.0) -> list[str]:
    """The actions of the task's routine, in the canonical wording: 3 g + 1, and the detours for which
    ``max_steps`` has room."""
    random = Random(derive(seed, "workshop routine"))
    order: Sequence[str] = task.spec["order"]
    spare = section.max_steps - (3 * len(order) + 1)
    room, actions = HALL, []
    for subgoal in order:
        tool = TOOLS[subgoal]
        if random.random() < detour_rate and spare > 0:
            spare -= 1
            room = random.choice(
                [other for other in (HALL, *ROOMS.values()) if other not in (room, ROOMS[tool])]
            )
            actions.append(f"go {room}")
        room = ROOMS[tool]
        actions += [f"go {room}", f"take {tool}", f"{subgoal} {PIECE}"]
    return list(_said([*actions, f"deliver {PIECE}"], random, section.synonyms))


def shortcut(task: Task, seed: int, section: WorkshopParameters) -> list[str]:
    """The actions of the piece's shortcut, in the canonical wording; in drawn order if the order is free.

    Raises:
        TaskError: the piece has none.
    """
    actions: list[str] = list(task.spec.get("shortcut", ()))
    if not actions:
        raise TaskError(f"task {task.task_id}: its piece has no shortcut")
    random = Random(derive(seed, "workshop shortcut"))
    if section.shortcut.order == "free":
        random.shuffle(actions)
    return list(_said(actions, random, section.synonyms))


def _said(actions: Sequence[str], random: Random, synonyms: int) -> Iterator[str]:
    """The actions, each verb drawn among its first synonyms."""
    for action in actions:
        verb, _, thing = action.partition(" ")
        yield f"{random.choice(SYNONYMS.get(verb, (verb,))[:synonyms])} {thing}"
