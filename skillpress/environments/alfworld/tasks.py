"""The official games as tasks.

Train and validation tasks are different games of ``train``; test tasks are all games of ``valid_seen`` (IID,
140) and ``valid_unseen`` (OOD, 134), each once. If fewer are requested, they are drawn by seed and spread
evenly. Games are sorted by part and task type, in a drawn order within a type, and every (N/n)-th is taken,
so each type keeps its share up to one game. Tasks of the split ``unseen``, which training evaluates but does
not learn from, are games of ``valid_unseen`` as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.games import COUNTS, GameError, describe, find_tree, game_paths
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "alfworld"
STRATA = {"train": "train", "valid_seen": "iid", "valid_unseen": "ood"}
"""Maps a part of the official games to the first half of a stratum, such as ``ood/look_at_obj_in_light``."""
TEST_PARTS = ("valid_seen", "valid_unseen")
UNSEEN, UNSEEN_PART = "unseen", "valid_unseen"
"""A split, and the part that its games come from. Some test games come from the same part, and may be the
same games."""
_TEST_GAMES = sum(COUNTS[part] for part in TEST_PARTS)
_FILE = "/game.tw-pddl"


def make_tasks(parameters: AlfworldParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits: train and validation in a drawn order, test sorted.

    Raises:
        GameError: the games are missing, or their number differs from the official release.
        TaskError: more tasks are requested than there are games.
    """
    _check_sizes(sizes)
    tree = find_tree(parameters.data)
    train = game_paths(tree, "train")
    test = [path for part in TEST_PARTS for path in game_paths(tree, part)]
    drawn = spread(train, sizes.train + sizes.validation, seed)
    held_back = set(spread(drawn, sizes.validation, derive(seed, "validation")))
    generator(seed, "alfworld order").shuffle(drawn)
    for path in drawn:
        yield game_task(path, "validation" if path in held_back else "train")
    for path in sorted(spread(test, sizes.test, seed)):
        yield game_task(path, "test")
    if sizes.unseen:
        other_rooms = game_paths(tree, UNSEEN_PART)
        for path in sorted(spread(other_rooms, sizes.unseen, derive(seed, UNSEEN))):
            yield game_task(path, UNSEEN)


def spread(paths: Sequence[str], count: int, seed: int) -> list[str]:
    """``count`` of the paths, drawn by seed, in proportion over parts and task types."""

    def place(path: str) -> tuple[str, str, int]:
        return path.split("/")[0], describe(path).task_type, derive(seed, "alfworld", path)

    ordered = sorted(paths, key=place)
    offset = derive(seed, "alfworld offset") % len(ordered)
    return [ordered[(offset + index * len(ordered) // count) % len(ordered)] for index in range(count)]


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not ALFWorld's, repeats a game, or has a game in the wrong split."""
    for some in (
        [task for task in tasks if task.split != UNSEEN],
        [task for task in tasks if task.split == UNSEEN],
    ):
        refuse_repetitions(some, ENVIRONMENT, "game", _game_of)


def _game_of(task: Task) -> str:
    try:
        path = describe(str(task.spec.get("game"))).path
    except GameError as error:
        raise TaskError(f"task {task.task_id}: spec.game: {error}") from error
    part = path.split("/")[0]
    allowed = {"test": TEST_PARTS, UNSEEN: (UNSEEN_PART,)}.get(task.split, ("train",))
    if part not in allowed:
        raise TaskError(f"task {task.task_id}: a game of {part} cannot be of the split {task.split}")
    return path


def game_task(path: str, split: str) -> Task:
    """The task of a game's path."""
    game = describe(path)
    stratum = f"{STRATA[path.split('/')[0]]}/{game.task_type}"
    return Task(
        task_id=path.removesuffix(_FILE),
        environment=ENVIRONMENT,
        seed=0,
        spec={"game": path},
        split=split,
        stratum=stratum,
    )


def game_path(task_id: str) -> str:
    """The path of a task's game, from the task's id."""
    return task_id + _FILE


def _check_sizes(sizes: SplitSizes) -> None:
    if sizes.train + sizes.validation > COUNTS["train"]:
        raise TaskError(
            f"tasks.train + tasks.validation: is {sizes.train} + {sizes.validation}, "
            f"but there are only "
            f"{COUNTS['train']} training games"
        )
    if sizes.test > _TEST_GAMES:
        raise TaskError(f"tasks.test: is {sizes.test}, but there are only {_TEST_GAMES} test games")
    if sizes.unseen > COUNTS[UNSEEN_PART]:
        raise TaskError(
            f"tasks.unseen: is {sizes.unseen}, but there are only {COUNTS[UNSEEN_PART]} unseen games"
        )
