"""How an episode's cut is drawn: a frame around the items that each phrase covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from skillpress.core.trajectory import Skills

Item = TypeVar("Item")


def framed(
    items: Iterable[Item], phrases: Iterable[Skills], has_skill: Callable[[Item], bool]
) -> Iterator[tuple[Sequence[Item], Skills | None]]:
    """Each item in exactly one frame: (items, phrase). An item without a skill is in the frame that it
    interrupts, or in its own frame, whose phrase is None.
    """
    waiting = list(items)
    for phrase in phrases:
        while not has_skill(waiting[0]):
            yield [waiting.pop(0)], None
        inside: list[Item] = []
        missing = len(phrase)
        while missing:
            inside.append(waiting.pop(0))
            missing -= has_skill(inside[-1])
        yield inside, phrase
    yield from (([item], None) for item in waiting)
