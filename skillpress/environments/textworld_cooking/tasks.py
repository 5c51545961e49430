"""Games for all splits: designed and compiled in several processes, in a fixed order.

A game's seed derives from the experiment's seed and the game's number in its stratum; no two games share a
seed. Designing takes 10 ms, so a game whose split is full (``splits.py``) is dropped before the half second
that compiling takes.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.bundle import SplitSizes
from skillpress.environments.textworld_cooking.design import (
    GameSettings,
    Ingredient,
    design,
    ingredients_of,
    is_trap,
)
from skillpress.environments.textworld_cooking.games import GameCache
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.environments.textworld_cooking.splits import (
    ENVIRONMENT,
    STRATA,
    UNSEEN,
    places,
    recipe_name,
    settings_of,
    split_of,
)

_AHEAD = 32
"""Maximum number of pending designs, and of pending games to compile. It does not depend on the number of
processes, so the order is fixed."""
_PATIENCE = 20_000
"""Number of successive designs without a fitting place after which the sizes are considered unreachable."""


@dataclass(frozen=True)
class Designed:
    """The data of a game's design, without the game."""

    settings: GameSettings
    seed: int
    ingredients: tuple[Ingredient, ...]
    walkthrough: tuple[str, ...]


def make_tasks(parameters: CookingParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits, in a fixed order, each as soon as its game is in the cache.

    Raises:
        TaskError: there are too few different games to fill the splits.
        GameError, StorageError: a game could not be generated or stored.
    """
    wanted = places(sizes, parameters.simple_share)
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"))
    compiling: deque[tuple[Task, Future[Path]]] = deque()
    try:
        for task in _all_tasks(pool, wanted, sizes.unseen, seed):
            settings = GameSettings.from_spec(task.spec["settings"])
            cache = GameCache(parameters.cache)
            compiling.append((task, pool.submit(cache.program, settings, task.seed)))
            if len(compiling) > _AHEAD:
                yield _compiled(compiling)
        while compiling:
            yield _compiled(compiling)
    finally:
        pool.shutdown(cancel_futures=True)  # pending designs are not needed any more


def describe(settings: GameSettings, seed: int) -> Designed:
    """Design a game and keep what a task needs."""
    game = design(settings, seed)
    return Designed(settings, seed, ingredients_of(game), tuple(game.metadata["walkthrough"]))


def task_of(designed: Designed, split: str) -> Task:
    """The row of a designed game."""
    spec = {
        "settings": designed.settings.as_spec(),
        "ingredients": [list(ingredient) for ingredient in designed.ingredients],
        "trap": is_trap(designed.settings, designed.ingredients),
        "walkthrough": list(designed.walkthrough),
    }
    stratum = designed.settings.stratum
    return Task(
        task_id=f"{stratum}-{designed.seed}",
        environment=ENVIRONMENT,
        seed=designed.seed,
        spec=spec,
        split=split,
        stratum=stratum,
    )


def _all_tasks(
    pool: ProcessPoolExecutor, wanted: Counter[tuple[str, str]], unseen: int, seed: int
) -> Iterator[Task]:
    """Yield the tasks of all splits, those of ``unseen`` last."""
    seeds: set[int] = set()
    tested: set[str] = set()
    for task in _tasks(_designs(pool, wanted, seed), wanted):
        seeds.add(task.seed)
        if task.split == "test":
            tested.add(recipe_name(task.spec["ingredients"]))
        yield task
    if unseen:
        yield from _unseen_tasks(pool, unseen, seeds, tested, seed)


def _unseen_tasks(
    pool: ProcessPoolExecutor, missing: int, seeds: set[int], tested: set[str], seed: int
) -> Iterator[Task]:
    """Yield hard games with recipes of the testing quarter, without those that are ``tested``.

    Args:
        seeds: seeds of the games of other splits; new ones are added.
    """
    idle = 0
    for designed in _hard_designs(pool, seed):
        recipe = recipe_name(designed.ingredients)
        if split_of(designed.ingredients) == "test" and recipe not in tested and designed.seed not in seeds:
            seeds.add(designed.seed)
            idle, missing = 0, missing - 1
            yield task_of(designed, UNSEEN)
        if not missing:
            return
        idle += 1
        if idle > _PATIENCE:
            raise TaskError(
                f"no fitting game among the last {_PATIENCE}, still missing {missing} of {UNSEEN}"
            )


def _hard_designs(pool: ProcessPoolExecutor, seed: int) -> Iterator[Designed]:
    """Yield hard games, without end, from seeds that no other split uses."""
    waiting: deque[Future[Designed]] = deque()
    for number in count():
        game_seed = derive(seed, "cooking game", UNSEEN, number) % 2**31
        waiting.append(pool.submit(describe, settings_of("hard", number), game_seed))
        if len(waiting) > _AHEAD:
            yield waiting.popleft().result()


def _designs(pool: ProcessPoolExecutor, wanted: Counter[tuple[str, str]], seed: int) -> Iterator[Designed]:
    """Yield games, without end, of the strata that still have open places, in a fixed order."""
    numbers = {stratum: count() for stratum in STRATA}
    waiting: deque[Future[Designed]] = deque()
    while True:
        open_strata = [stratum for stratum in STRATA if any(s == stratum for s, _ in +wanted)]
        while len(waiting) < _AHEAD:
            for stratum in open_strata:
                number = next(numbers[stratum])
                game_seed = derive(seed, "cooking game", stratum, number) % 2**31
                waiting.append(pool.submit(describe, settings_of(stratum, number), game_seed))
        yield waiting.popleft().result()


def _tasks(designs: Iterator[Designed], wanted: Counter[tuple[str, str]]) -> Iterator[Task]:
    """Yield the designs that fit an open place, until there is none; take the places from ``wanted``."""
    seeds: set[int] = set()
    idle = 0
    for designed in designs:
        place = (designed.settings.stratum, split_of(designed.ingredients))
        if wanted[place] > 0 and designed.seed not in seeds:
            wanted[place] -= 1
            seeds.add(designed.seed)
            idle = 0
            yield task_of(designed, place[1])
        if not +wanted:
            return
        idle += 1
        if idle > _PATIENCE:
            missing = ", ".join(
                f"{number} {stratum} of {split}" for (stratum, split), number in wanted.items()
            )
            raise TaskError(f"no fitting game among the last {_PATIENCE}, still missing {missing}")


def _compiled(compiling: deque[tuple[Task, Future[Path]]]) -> Task:
    """The oldest task, once its game is in the cache."""
    task, game = compiling.popleft()
    game.result()
    return task
