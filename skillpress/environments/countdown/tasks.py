"""Puzzles from reasoning-gym's generator, filtered and split.

A puzzle consists of its target and its sorted numbers. A hash of the puzzle alone determines its split (3/4
train, 1/8 validation, 1/8 test), so splits are disjoint whatever the sizes and seeds of two experiments. Item
i of the generator draws from ``Random(base + i)``; ``base`` derives from the experiment's seed, so two seeds
do not share a range of items. The split ``unseen`` has puzzles of more numbers than any other split, from a
separate range of items.

The generator spends 4 ms per item in sympy to do arithmetic on four integers. Its code is run here with a
replacement of ``symbols``: terms that compute exactly with fractions. The random draws, the numbers and the
targets are unchanged (a test compares them item by item). Only the printed expression is lost, and it is not
used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from types import FunctionType
from typing import Any

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import LARGEST_SOURCE, CountdownParameters
from skillpress.environments.countdown.rules import Pool, solutions
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "countdown"
UNSEEN = "unseen"
Puzzle = tuple[int, Pool]
"""(target, sorted numbers)."""
_PATIENCE = 10_000
"""Number of successive items without a new puzzle after which the sizes are considered unreachable."""
_SPLIT_OF_EIGHTH = ("train",) * 6 + ("validation", "test")


def make_tasks(parameters: CountdownParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits, in the order of generation, each puzzle once.

    Raises:
        TaskError: there are too few different puzzles of this kind to fill the splits.
    """
    wanted = {"train": sizes.train, "validation": sizes.validation, "test": sizes.test}
    yield from _filled(wanted, split_of, parameters, derive(seed, "countdown tasks") >> 1)
    if sizes.unseen:
        numbers = parameters.unseen_numbers
        larger = parameters.model_copy(update={"min_numbers": numbers, "max_numbers": numbers})
        base = derive(seed, "countdown unseen tasks") >> 1
        yield from _filled({UNSEEN: sizes.unseen}, lambda puzzle: UNSEEN, larger, base)


def _filled(
    wanted: dict[str, int], split_of: Callable[[Puzzle], str], parameters: CountdownParameters, base: int
) -> Iterator[Task]:
    """Yield tasks of the generator's items from ``base`` on, until every split has the ``wanted`` number."""
    seen: set[Puzzle] = set()
    idle = 0
    for item, puzzle in _generated(parameters, base):
        if puzzle is not None and puzzle not in seen and wanted[split := split_of(puzzle)]:
            seen.add(puzzle)
            target, numbers = puzzle
            ways = len(solutions(numbers, target, parameters.max_target))
            if ways >= parameters.min_solutions:
                wanted[split] -= 1
                idle = 0
                yield _task(puzzle, split, ways, item)
        if not any(wanted.values()):
            return
        idle += 1
        if idle > _PATIENCE:
            missing = ", ".join(f"{number} of {name}" for name, number in wanted.items() if number)
            raise TaskError(
                f"no new puzzle among the last {_PATIENCE} generated, still missing {missing}: "
                "ask for fewer tasks, fewer solutions, or a wider range of numbers and targets"
            )


def split_of(puzzle: Puzzle) -> str:
    """The split that a puzzle belongs to in every experiment."""
    digest = hashlib.blake2b(name_of(puzzle).encode(), digest_size=1).digest()
    return _SPLIT_OF_EIGHTH[digest[0] % 8]


def name_of(puzzle: Puzzle) -> str:
    """The name of a puzzle, such as ``54=1,2,28,80``, which is also the task's id."""
    target, numbers = puzzle
    return f"{target}={','.join(map(str, numbers))}"


def stratum_of(puzzle: Puzzle, ways: int) -> str:
    """The difficulty class: the number of numbers and the number of solutions."""
    few = "1" if ways == 1 else "2-9" if ways < 10 else "10+"
    return f"{len(puzzle[1])} numbers, {few} solution{'' if few == '1' else 's'}"


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that is not Countdown's, repeats a puzzle, or has a puzzle in two splits."""
    refuse_repetitions(tasks, ENVIRONMENT, "puzzle", lambda task: name_of(_puzzle(task)))


def _puzzle(task: Task) -> Puzzle:
    target, numbers = task.spec.get("target"), task.spec.get("numbers")
    if not isinstance(target, int) or not isinstance(numbers, list | tuple) or len(numbers) < 2:
        raise TaskError(f"task {task.task_id}: spec {dict(task.spec)} has no target and numbers")
    return target, tuple(sorted(numbers))


def _task(puzzle: Puzzle, split: str, ways: int, item: int) -> Task:
    target, numbers = puzzle
    spec = {"target": target, "numbers": list(numbers), "solutions": ways}
    return Task(
        task_id=name_of(puzzle),
        environment=ENVIRONMENT,
        seed=item,
        spec=spec,
        split=split,
        stratum=stratum_of(puzzle, ways),
    )


def _generated(parameters: CountdownParameters, base: int) -> Iterator[tuple[int, Puzzle | None]]:
    """Yield (seed of the item, puzzle) for the generator's items from ``base`` on, without end.

    The puzzle is None if the generator gave up on an item: after 100 attempts without a target in the range
    it raises ``ValueError``.
    """
    dataset = generator(parameters, base)
    for index in count():
        try:
            metadata = dataset[index]["metadata"]
        except ValueError:
            yield base + index, None
            continue
        yield base + index, (int(metadata["target"]), tuple(sorted(metadata["numbers"])))


def generator(parameters: CountdownParameters, base: int) -> Any:
    """reasoning-gym's Countdown data set, with its algebra done by :class:`_Term`."""
    from reasoning_gym.games import countdown  # takes seconds, and only task generation needs it

    upstream = countdown.CountdownDataset
    arithmetic = {**vars(countdown), "symbols": _terms}

    class Dataset(upstream):  # type: ignore[misc, valid-type]
        _generate_candidate_expression = FunctionType(
            upstream._generate_candidate_expression.__code__, arithmetic
        )

    return Dataset(
        countdown.CountdownConfig(
            min_numbers=parameters.min_numbers,
            max_numbers=parameters.max_numbers,
            min_value=1,
            max_value=LARGEST_SOURCE,
            min_target=parameters.min_target,
            max_target=parameters.max_target,
            seed=base,
        )
    )


class _Term:
    """A formula over named numbers, with the part of sympy's interface that the generator uses."""

    def __init__(self, value: Callable[[Mapping[_Term, int]], Fraction] | None = None) -> None:
        """``value`` maps the numbers to the formula's value; None for a number itself."""
        self.subs = value or (lambda numbers: Fraction(numbers[self]))

    def __add__(self, other: _Term) -> _Term:
        return _Term(lambda numbers: self.subs(numbers) + other.subs(numbers))

    def __sub__(self, other: _Term) -> _Term:
        return _Term(lambda numbers: self.subs(numbers) - other.subs(numbers))

    def __mul__(self, other: _Term) -> _Term:
        return _Term(lambda numbers: self.subs(numbers) * other.subs(numbers))

    def __truediv__(self, other: _Term) -> _Term:
        return _Term(lambda numbers: self.subs(numbers) / other.subs(numbers))


def _terms(names: str) -> tuple[_Term, ...]:
    """The terms of a range such as ``symbols("x_0:3")``: x_0, x_1, x_2."""
    first, last = names.removeprefix("x_").split(":")
    return tuple(_Term() for _ in range(int(first), int(last)))
