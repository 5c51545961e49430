"""Tasks: a piece and an order, in splits that share no pair.

Training and validation tasks pair pieces and orders of the catalogue. So do test tasks of the stratum
``known``, in other pairs. All other test tasks, and those of the split ``unseen``, have pieces that training
lacks: with an order of training (``unseen/piece``), with another order (``unseen/order``), or with an order
of one more sub-goal (``unseen/longer``). Such a piece has a shortcut only if ``shortcut.new_pieces`` gives it
the one of its mark. Test tasks are divided evenly among the four strata, ``unseen`` among the last three.

The stratum of a training task also names its order: ``known/saw-paint``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions
from skillpress.environments.workshop.actions import ATTRIBUTES, SUBGOALS
from skillpress.environments.workshop.catalogue import Catalogue, Pair, Piece, draw_catalogue, pairs
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.environments.workshop.shortcuts import draw_shortcut, wins_on_new

ENVIRONMENT = "workshop"
KNOWN = "known"
UNSEEN_STRATA = ("unseen/piece", "unseen/order", "unseen/longer")
STRATA = (KNOWN, *UNSEEN_STRATA)


def make_tasks(section: WorkshopParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        TaskError: training would lack a piece or an order of the section, or there are too few pairs.
    """
    catalogue = draw_catalogue(section, seed)
    tested = _divided(sizes.test, STRATA)
    known = list(pairs(catalogue.pieces, catalogue.orders))
    _check_sizes(section, sizes, len(known) - tested[KNOWN])
    validated = sizes.train + sizes.validation
    for split, chosen in (("train", known[: sizes.train]), ("validation", known[sizes.train : validated])):
        for pair in chosen:
            yield _task(section, pair, split, f"{KNOWN}/{'-'.join(pair[1])}", seed)
    kinds = {name: _new_pairs(catalogue, name, seed) for name in UNSEEN_STRATA}
    for stratum in _taken_in_turn(tested):
        pair = known.pop() if stratum == KNOWN else _next(kinds, stratum, "test")
        yield _task(section, pair, "test", stratum, seed)
    for stratum in _taken_in_turn(_divided(sizes.unseen, UNSEEN_STRATA)):
        yield _task(section, _next(kinds, stratum, "unseen"), "unseen", stratum, seed)


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not the workshop's, repeats a task, or has one in two splits."""
    refuse_repetitions(tasks, ENVIRONMENT, "task", lambda task: name_of(_pair(task)))


def name_of(pair: Pair) -> str:
    """The name of a piece with an order, such as ``red-oak-star:saw,paint``, which is also the task's id."""
    piece, order = pair
    return f"{'-'.join(piece)}:{','.join(order)}"


def _check_sizes(section: WorkshopParameters, sizes: SplitSizes, pairs_left: int) -> None:
    wanted, needed = sizes.train + sizes.validation, max(section.pieces, section.orders)
    if wanted > pairs_left:
        raise TaskError(
            f"tasks.train and tasks.validation: are {sizes.train} and {sizes.validation}, can be at most "
            f"{max(pairs_left, 0)} together: environment.pieces {section.pieces} x orders {section.orders}, "
            "less a quarter of tasks.test"
        )
    if 0 < sizes.train < needed:
        raise TaskError(
            f"tasks.train: is {sizes.train}, must be at least {needed}, so that training has all of "
            f"environment.pieces ({section.pieces}) and orders ({section.orders})"
        )


def _new_pairs(catalogue: Catalogue, stratum: str, seed: int) -> Iterator[Pair]:
    """All pairs of this stratum; training lacks their pieces."""
    orders = {
        "unseen/piece": catalogue.orders,
        "unseen/order": catalogue.new_orders,
        "unseen/longer": catalogue.longer_orders,
    }[stratum]
    drawn = generator(seed, "workshop new pieces", stratum).permutation(len(catalogue.new_pieces))
    pieces: list[Piece] = [catalogue.new_pieces[number] for number in drawn.tolist()]
    return pairs(pieces, orders)


def _next(kinds: dict[str, Iterator[Pair]], stratum: str, split: str) -> Pair:
    pair = next(kinds[stratum], None)
    if pair is None:
        raise TaskError(
            f"tasks.{split}: the stratum {stratum} has fewer tasks: ask for fewer, or for "
            "fewer environment.pieces and orders"
        )
    return pair


def _divided(size: int, strata: Sequence[str]) -> Counter[str]:
    """The number of tasks of each stratum; the first have one more if the size is not a multiple."""
    return Counter(islice(cycle(strata), size))


def _taken_in_turn(counts: Counter[str]) -> Iterator[str]:
    """Yield a stratum for each task, in turn, so that the first tasks cover every stratum."""
    return islice(cycle(counts), counts.total())


def _task(section: WorkshopParameters, pair: Pair, split: str, stratum: str, seed: int) -> Task:
    piece, order = pair
    wins = stratum.startswith(KNOWN) or wins_on_new(section.shortcut, piece, seed)
    shortcut = draw_shortcut(section.shortcut, piece, order, seed) if wins else []
    return Task(
        task_id=name_of(pair),
        environment=ENVIRONMENT,
        seed=derive(seed, "workshop task", name_of(pair)),
        spec={"piece": list(piece), "order": list(order), "shortcut": shortcut},
        split=split,
        stratum=stratum,
    )


def _pair(task: Task) -> Pair:
    piece, order = task.spec.get("piece"), task.spec.get("order")
    if not isinstance(piece, list | tuple) or not isinstance(order, list | tuple):
        raise TaskError(f"task {task.task_id}: spec {dict(task.spec)} has no piece and order")
    if len(piece) != len(ATTRIBUTES) or any(
        word not in words for word, words in zip(piece, ATTRIBUTES, strict=True)
    ):
        raise TaskError(f"task {task.task_id}: spec.piece is {piece}, must be a colour, a wood and a mark")
    if not order or len(set(order)) < len(order) or not set(order) <= set(SUBGOALS):
        raise TaskError(
            f"task {task.task_id}: spec.order is {order}, must be different ones of {', '.join(SUBGOALS)}"
        )
    return tuple(piece), tuple(order)
