"""Which games an experiment needs, and which split a game belongs to.

A hash of the recipe (foods and how they are processed) decides the split: half of all recipes are for
training, a quarter for validation, and a quarter for testing, whatever the sizes and seeds of two
experiments. Every split has the same share of simple games. The split ``unseen`` has only hard games, with
recipes of the testing quarter that no test game of the experiment has.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.bundle import SplitSizes
from skillpress.environments.splits import disjoint_splits
from skillpress.environments.textworld_cooking.design import HARD, SIMPLE, GameSettings

ENVIRONMENT = "textworld_cooking"
STRATA = ("simple", "hard")
UNSEEN = "unseen"
_SPLIT_OF_QUARTER = ("train", "train", "validation", "test")


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
