"""Games for all splits: designed and compiled in several processes, in a fixed order.

A hash of the recipe (foods and how they are processed) decides the split: half of all recipes are for
training, a quarter for validation, and a quarter for testing, whatever the sizes and seeds of two
experiments. Every split has the same share of simple games. The split ``unseen`` has only hard games, with
recipes of the testing quarter that no test game of the experiment has.

A game's seed derives from the experiment's seed and the game's number in its stratum; no two games share a
seed. Designing takes 10 ms, so a game whose split is full is dropped before the half second
that compiling takes.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import disjoint_splits
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

ENVIRONMENT = "textworld_cooking"
STRATA = ("simple", "hard")
UNSEEN = "unseen"
_SPLIT_OF_QUARTER = ("train", "train", "validation", "test")
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
        "settings": asdict(designed.settings),
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


def places(sizes: SplitSizes, simple_share: float) -> Counter[tuple[str, str]]:
    """Maps (stratum, split) to its number of tasks, without zeros."""
    wanted: Counter[tuple[str, str]] = Counter()
    for split, size in (("train", sizes.train), ("validation", sizes.validation), ("test", sizes.test)):
        simple = round(size * simple_share)
        wanted["simple", split] = simple
        wanted["hard", split] = size - simple
    return +wanted


def settings_of(stratum: str, number: int) -> GameSettings:
    """The settings of the stratum's game with this number; the simple settings take turns."""
    return HARD if stratum == "hard" else SIMPLE[number % len(SIMPLE)]


def split_of(ingredients: Sequence[Sequence[str]]) -> str:
    """The split that a recipe belongs to in every experiment."""
    digest = hashlib.blake2b(recipe_name(ingredients).encode(), digest_size=1).digest()
    return _SPLIT_OF_QUARTER[digest[0] % 4]


def recipe_name(ingredients: Sequence[Sequence[str]]) -> str:
    """A name such as ``raw chopped carrot, fried uncut egg``, in alphabetical order of the foods."""
    return ", ".join(f"{cooked} {cut} {food}" for food, cooked, cut in sorted(map(tuple, ingredients)))


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not this environment's, repeats a game, or shares recipes between splits."""
    disjoint_splits(tasks, ENVIRONMENT, "recipe", _recipe_of)
    split_of_seed: dict[int, str] = {}
    for task in tasks:
        if task.seed in split_of_seed:
            raise TaskError(
                f"seed {task.seed} of task {task.task_id} occurs twice, "
                f"in {split_of_seed[task.seed]} and in {task.split}"
            )
        split_of_seed[task.seed] = task.split


def _recipe_of(task: Task) -> str:
    missing = {"settings", "ingredients", "walkthrough", "trap"} - set(task.spec)
    if missing:
        raise TaskError(f"task {task.task_id}: spec has no {', '.join(sorted(missing))}")
    return repr(recipe_name(task.spec["ingredients"]))
