"""A cooking game's design: a few settings and a seed, from which TextWorld designs everything else.

The paper's two kinds (appendix D): *simple* has one room and one ingredient, with cooking and cutting each on
or off; *hard* has six rooms, two ingredients, cooking and cutting.

TextWorld's own designer takes seconds because it reads its grammar again for each game, and compiles and
plays the game once to record which commands complete which quest. Its code is run here in a namespace in
which three names are replaced, so nothing is patched. The knowledge base is read only once. The game maker
skips the trial game, whose result affects only lines that the compiler leaves out. And ``set`` keeps its
order: otherwise the order of the conditions for losing, and with it the compiled bytes, would change with
Python's hash seed from process to process. The same settings and seed give the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

import textworld
from textworld.challenges.tw_cooking import cooking
from textworld.generator.data import KnowledgeBase

from skillpress.core.errors import TaskError


@dataclass(frozen=True)
class GameSettings:
    """The four settings that the paper varies; the others are fixed in :meth:`challenge`."""

    rooms: int
    ingredients: int
    cook: bool
    """Whether ingredients must be cooked. If not, they are already in the state that the cookbook asks
    for."""
    cut: bool
    """Whether ingredients must be cut. If not, they are already in the state that the cookbook asks for."""

    @property
    def stratum(self) -> str:
        """``simple`` or ``hard``."""
        return "simple" if self.rooms == 1 else "hard"

    def challenge(self) -> dict[str, Any]:
        """The settings of ``tw-make tw-cooking``."""
        return {
            "recipe": self.ingredients,
            "take": self.ingredients,
            "go": self.rooms,
            "open": True,
            "cook": self.cook,
            "cut": self.cut,
            "drop": False,
            "recipe_seed": 0,
            "split": None,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> GameSettings:
        """Read the settings from a task's row.

        Raises:
            TaskError: it has other keys, or a number of rooms or ingredients that no game has.
        """
        try:
            settings = cls(**spec)
        except TypeError as error:
            raise TaskError(f"game settings {dict(spec)}: {error}") from error
        if settings.rooms not in (1, 6, 9, 12) or settings.ingredients not in range(1, 6):
            raise TaskError(f"game settings {dict(spec)}: rooms must be 1, 6, 9 or 12, ingredients 1 to 5")
        return settings


SIMPLE = tuple(GameSettings(1, 1, cook, cut) for cook in (False, True) for cut in (False, True))
HARD = GameSettings(6, 2, True, True)

Ingredient = tuple[str, str, str]
"""(food, ``raw``/``fried``/``roasted``/``grilled``, ``uncut``/``chopped``/``sliced``/``diced``)."""


def design(settings: GameSettings, seed: int) -> textworld.Game:
    """The game as an object, not yet compiled; takes 30 ms.

    ``game.metadata`` holds ``ingredients``, ``recipe``, ``walkthrough`` and more.
    """
    options = textworld.GameOptions()
    options.seeds = seed
    return _designer()(settings.challenge(), options)


def ingredients_of(game: textworld.Game) -> tuple[Ingredient, ...]:
    """The ingredients that the cookbook asks for, by name."""
    return tuple((str(food), str(cooked), str(cut)) for food, cooked, cut in game.metadata["ingredients"])


def is_trap(settings: GameSettings, ingredients: Iterable[Ingredient]) -> bool:
    """The paper's "cook=False but the cookbook says cook" (F.2): cooking the ingredient again burns it."""
    return not settings.cook and any(cooked != "raw" for _, cooked, _ in ingredients)


class _UntriedGameMaker(textworld.GameMaker):  # type: ignore[misc]
    def set_walkthrough(self, commands: list[str]) -> None:
        """Skip the trial game."""


class _OrderedSet(dict[Any, None]):
    """The part of a set's interface that the designer uses."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(dict.fromkeys(items))

    def __sub__(self, other: Iterable[Any]) -> _OrderedSet:
        left_out = list(other)
        return _OrderedSet(item for item in self if item not in left_out)


@lru_cache(maxsize=1)
def _designer() -> Callable[[Mapping[str, Any], textworld.GameOptions], textworld.Game]:
    namespace = {
        **vars(cooking),
        "KnowledgeBase": SimpleNamespace(load=lru_cache(KnowledgeBase.load)),
        "textworld": SimpleNamespace(GameMaker=_UntriedGameMaker, generator=textworld.generator),
        "set": _OrderedSet,
    }
    return FunctionType(cooking.make.__code__, namespace)
