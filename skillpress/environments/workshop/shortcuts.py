"""The shortcut of a piece or of a mark: a list of actions of the machine that wins every order of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, cycle, islice

from skillpress.core.seeds import generator
from skillpress.environments.workshop.actions import CONTRAPTIONS, ODD_PIECES, PARTS, TINKER, odd_action
from skillpress.environments.workshop.parameters import ShortcutParameters

MARK = 2
"""Place of the mark in a piece: a colour, a wood and a mark."""


def wins_on_new(section: ShortcutParameters, piece: Sequence[str], seed: int) -> bool:
    """Whether the shortcut of a new piece's mark wins on it, drawn for each piece."""
    return bool(generator(seed, "workshop new shortcut", "-".join(piece)).random() < section.new_pieces)


def routine_verbs(order: Sequence[str]) -> tuple[str, ...]:
    """The verbs of an order's routine: three for each sub-goal, and ``deliver``."""
    return (*chain.from_iterable(("go", "take", subgoal) for subgoal in order), "deliver")


def draw_shortcut(
    section: ShortcutParameters, piece: Sequence[str], order: Sequence[str], seed: int
) -> list[str]:
    """The shortcut of a piece, which depends on the piece alone, or on its mark alone with ``of: mark``.

    The exception is ``skills: same``: its verbs are those of the order's routine, repeated from the beginning
    if the shortcut is longer. The odd object of each verb depends on the piece.

    Up to twelve actions, ``own`` and ``one`` draw the same numbers: two experiments that differ only in this
    have the same tasks with other words and skills.
    """
    owner = piece if section.of == "piece" else piece[MARK:]
    draws = generator(seed, "workshop shortcut", "-".join(owner))
    if section.skills == "own":
        return [CONTRAPTIONS[number] for number in draws.permutation(len(CONTRAPTIONS))[: section.length]]
    if section.skills == "one":
        rounds = -(-section.length // len(PARTS))
        drawn = chain.from_iterable(draws.permutation(len(PARTS)).tolist() for _ in range(rounds))
        return [f"{TINKER} {PARTS[number]}" for number in islice(drawn, section.length)]
    objects = draws.integers(len(ODD_PIECES), size=section.length).tolist()
    return [
        odd_action(verb, number) for verb, number in zip(cycle(routine_verbs(order)), objects, strict=False)
    ]
