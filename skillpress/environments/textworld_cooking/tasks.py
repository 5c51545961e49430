"""Games for all splits: designed in several processes, split by recipe, compiled into the cache.

Which split a game belongs to is decided by a hash of its recipe (foods and how they are processed): a
half of all recipes is for training, a quarter for validation, a quarter for testing, whatever the
sizes and seeds of two experiments. A game's seed derives from the experiment's seed and the game's
number in its stratum, and no two games share one. Designing takes 30 ms, so that a game whose split
is full is dropped before the half second that compiling takes.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from skillpress.environments.bundle import SplitSizes
from skillpress.environments.textworld_cooking.design import (
    HARD,
    SIMPLE,
    GameSettings,
    Ingredient,
    design,
    ingredients_of,
    is_trap,
)
from skillpress.environments.textworld_cooking.games import GameCache
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.seeds import derive
from skillpress.trajectory import Task

ENVIRONMENT = "textworld_cooking"
STRATA = ("simple", "hard")
_SPLIT_OF_QUARTER = ("train", "train", "validation", "test")
_AHEAD = 64
"""Designs, and games to compile, that wait at a time; not per process, so that the order is fixed."""
_PATIENCE = 20_000
"""Designs in a row that may fit no open place before the sizes are called out of reach."""


@dataclass(frozen=True)
class Designed:
    """What a game's design says, without the game."""

    settings: GameSettings
    seed: int
    ingredients: tuple[Ingredient, ...]
    walkthrough: tuple[str, ...]


def make_tasks(parameters: CookingParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """The tasks of all splits, in a fixed order, each as soon as its game is in the cache.

    Raises:
        ValueError: there are too few different games to fill the splits.
        GameError, StorageError: a game could not be generated or stored.
    """
    wanted = places(sizes, parameters.simple_share)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        compiling: deque[tuple[Task, Future[Path]]] = deque()
        for task in _tasks(_designs(pool, wanted, seed), wanted):
            settings = GameSettings.from_spec(task.spec["settings"])
            cache = GameCache(parameters.cache)
            compiling.append((task, pool.submit(cache.program, settings, task.seed)))
            while len(compiling) > _AHEAD:
                yield _compiled(compiling)
        while compiling:
            yield _compiled(compiling)


def places(sizes: SplitSizes, simple_share: float) -> Counter[tuple[str, str]]:
    """(stratum, split) to how many tasks it takes, zeros left out."""
    wanted: Counter[tuple[str, str]] = Counter()
    for split, size in (("train", sizes.train), ("validation", sizes.validation), ("test", sizes.test)):
        simple = round(size * simple_share)
        wanted["simple", split] = simple
        wanted["hard", split] = size - simple
    return +wanted


def settings_of(stratum: str, number: int) -> GameSettings:
    """The settings of the stratum's game with this number; the simple ones take turns."""
    return HARD if stratum == "hard" else SIMPLE[number % len(SIMPLE)]


def split_of(ingredients: Sequence[Ingredient]) -> str:
    """The split that a recipe belongs to in every experiment."""
    digest = hashlib.blake2b(recipe_name(ingredients).encode(), digest_size=1).digest()
    return _SPLIT_OF_QUARTER[digest[0] % 4]


def recipe_name(ingredients: Sequence[Sequence[str]]) -> str:
    """``raw chopped carrot, fried uncut egg``, in alphabetical order of the foods."""
    return ", ".join(f"{cooked} {cut} {food}" for food, cooked, cut in sorted(map(tuple, ingredients)))


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not this world's, repeats a game, or shares recipes between splits.

    Raises:
        ValueError: naming the task and what is wrong with it.
    """
    split_of_recipe: dict[str, str] = {}
    split_of_seed: dict[int, str] = {}
    for task in tasks:
        if task.environment != ENVIRONMENT:
            raise ValueError(f"task {task.task_id} belongs to {task.environment!r}, not to {ENVIRONMENT!r}")
        missing = {"settings", "ingredients", "walkthrough", "trap"} - set(task.spec)
        if missing:
            raise ValueError(f"task {task.task_id}: spec has no {', '.join(sorted(missing))}")
        recipe = recipe_name(task.spec["ingredients"])
        other = split_of_recipe.setdefault(recipe, task.split)
        if other != task.split:
            raise ValueError(f"splits overlap: recipe {recipe!r} is in {other} and in {task.split}")
        if task.seed in split_of_seed:
            raise ValueError(
                f"seed {task.seed} of task {task.task_id} stands twice, "
                f"in {split_of_seed[task.seed]} and in {task.split}"
            )
        split_of_seed[task.seed] = task.split


def describe(settings: GameSettings, seed: int) -> Designed:
    """Design a game and keep what a task needs."""
    game = design(settings, seed)
    return Designed(settings, seed, ingredients_of(game), tuple(game.metadata["walkthrough"]))


def _designs(pool: ProcessPoolExecutor, wanted: Counter[tuple[str, str]], seed: int) -> Iterator[Designed]:
    """Games without end, of the strata that still have open places, in an order of their own."""
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
    """The designs that fit an open place, until there is none; takes the places from ``wanted``."""
    seeds: set[int] = set()
    idle = 0
    for designed in designs:
        place = (designed.settings.stratum, split_of(designed.ingredients))
        if wanted[place] > 0 and designed.seed not in seeds:
            wanted[place] -= 1
            seeds.add(designed.seed)
            idle = 0
            yield _task(designed, place[1])
        if not +wanted:
            return
        idle += 1
        if idle > _PATIENCE:
            missing = ", ".join(
                f"{number} {stratum} of {split}" for (stratum, split), number in wanted.items()
            )
            raise ValueError(f"no fitting game among the last {_PATIENCE}, still missing {missing}")


def _task(designed: Designed, split: str) -> Task:
    spec = {
        "settings": designed.settings.as_spec(),
        "ingredients": [list(ingredient) for ingredient in designed.ingredients],
        "trap": is_trap(designed.settings, designed.ingredients),
        "walkthrough": list(designed.walkthrough),
    }
    stratum = designed.settings.stratum
    return Task(f"{stratum}-{designed.seed}", ENVIRONMENT, designed.seed, spec, split, stratum)


def _compiled(compiling: deque[tuple[Task, Future[Path]]]) -> Task:
    """The oldest task, once its game is in the cache."""
    task, game = compiling.popleft()
    game.result()
    return task
