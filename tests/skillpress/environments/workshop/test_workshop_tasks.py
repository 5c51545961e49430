"""Tasks: every split and stratum holds what it says, and only pieces of training have shortcuts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.workshop.actions import (
    ATTRIBUTES,
    CONTRAPTIONS,
    PARTS,
    SUBGOALS,
    machine_actions,
)
from skillpress.environments.workshop.catalogue import pairs
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.environments.workshop.shortcuts import draw_shortcut
from skillpress.environments.workshop.tasks import check_tasks, make_tasks
from tests.support.environments.workshops import SIZES, made, section


def of(tasks: list[Task], split: str, stratum: str = "") -> list[Task]:
    return [task for task in tasks if task.split == split and task.stratum.startswith(stratum)]


def pieces(tasks: list[Task]) -> set[tuple[str, ...]]:
    return {tuple(task.spec["piece"]) for task in tasks}


def orders(tasks: list[Task]) -> set[tuple[str, ...]]:
    return {tuple(task.spec["order"]) for task in tasks}


@given(
    subgoals=st.integers(1, 4),
    count=st.integers(8, 12),
    made_of=st.integers(12, 40),
    seed=st.integers(0, 99),
)
@settings(max_examples=15)
def test_strata_hold_what_they_say(subgoals: int, count: int, made_of: int, seed: int) -> None:
    count = min(count, len(list(permutations(SUBGOALS, subgoals))) - (subgoals > 1))
    parameters = section(subgoals=subgoals, orders=count, pieces=made_of)
    sizes = SplitSizes(max(count, made_of), 8, 8 if subgoals > 1 else 2, 6 if subgoals > 1 else 1)
    tasks = made(parameters, seed, sizes)
    check_tasks(tasks)
    train = of(tasks, "train")
    assert len(pieces(train)) == made_of and len(orders(train)) == count
    assert {word for piece in pieces(train) for word in piece} == {w for words in ATTRIBUTES for w in words}
    assert {subgoal for order in orders(train) for subgoal in order} == set(SUBGOALS)
    for task in [*of(tasks, "validation"), *of(tasks, "test", "known")]:
        assert tuple(task.spec["piece"]) in pieces(train) and tuple(task.spec["order"]) in orders(train)
    for task in of(tasks, "test", "unseen") + of(tasks, "unseen"):
        order = tuple(task.spec["order"])
        assert tuple(task.spec["piece"]) not in pieces(train)
        longer = task.stratum == "unseen/longer"
        assert len(order) == len(set(order)) == subgoals + longer
        assert (order in orders(train)) == (task.stratum == "unseen/piece")
    with_shortcut = {task.task_id for task in tasks if task.spec["shortcut"]}
    assert with_shortcut == {task.task_id for task in tasks if task.stratum.startswith("known")}


def test_every_split_has_its_size_and_the_strata_of_test_and_unseen_are_equal(tasks: list[Task]) -> None:
    assert Counter(task.split for task in tasks) == {"train": 64, "validation": 8, "test": 32, "unseen": 12}
    strata = ("known", "unseen/piece", "unseen/order", "unseen/longer")
    assert Counter(task.stratum for task in of(tasks, "test")) == dict.fromkeys(strata, 8)
    assert Counter(task.stratum for task in of(tasks, "unseen")) == dict.fromkeys(strata[1:], 4)
    assert len({task.task_id for task in tasks}) == len(tasks)
    first = [task.stratum for task in of(tasks, "test")][:4]
    assert first == list(strata), "the first tasks are of all strata"


def test_a_training_task_is_of_the_class_of_its_order(tasks: list[Task]) -> None:
    for task in of(tasks, "train") + of(tasks, "validation"):
        assert task.stratum == f"known/{'-'.join(task.spec['order'])}"


def test_training_uses_pieces_and_orders_evenly(tasks: list[Task]) -> None:
    """64 tasks of 16 pieces and 8 orders: m = 4 tasks share a shortcut, 8 a routine."""
    train = of(tasks, "train")
    assert set(Counter(tuple(task.spec["piece"]) for task in train).values()) == {4}
    assert set(Counter(tuple(task.spec["order"]) for task in train).values()) == {8}
    shortcuts: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for task in train:
        shortcuts.setdefault(tuple(task.spec["piece"]), set()).add(tuple(task.spec["shortcut"]))
    assert all(len(found) == 1 for found in shortcuts.values()), "it belongs to the piece"
    assert len({found for each in shortcuts.values() for found in each}) > 12, "and differs between pieces"


@given(st.integers(1, 12), st.integers(1, 12))
def test_pairs_are_all_there_once_and_as_even_as_can_be_from_the_beginning(few: int, many: int) -> None:
    first, second = [(f"p{n}",) for n in range(few)], [(f"o{n}",) for n in range(many)]
    found = list(pairs(first, second))
    assert len(set(found)) == len(found) == few * many
    for count in range(1, len(found)):
        times = Counter(piece for piece, _ in found[:count])
        assert max(times.values()) - min(times[piece] for piece in first) <= 1
    assert len({order for _, order in found[: max(few, many)]}) == many


@pytest.mark.parametrize("length", [1, 7, 12])
def test_an_own_shortcut_uses_a_contraption_once(length: int) -> None:
    found = draw_shortcut(section({"length": length}).shortcut, ("red", "oak", "star"), ("saw", "wax"), 3)
    assert len(set(found)) == length and set(found) <= set(CONTRAPTIONS)


def test_a_shortcut_of_parts_repeats_none_before_all_were_used() -> None:
    shortcut = section({"length": 15, "skills": "one"}).shortcut
    found = draw_shortcut(shortcut, ("red", "oak", "star"), ("saw", "wax"), 3)
    assert {action.removeprefix("tinker ") for action in found[:12]} == set(PARTS) and len(found) == 15


@pytest.mark.parametrize("length", [1, 7, 12])
def test_own_and_one_are_the_same_tasks_in_other_words(length: int) -> None:
    own, one = (made(section({"skills": skills, "length": length})) for skills in ("own", "one"))
    part = {contraption: f"tinker {name}" for contraption, name in zip(CONTRAPTIONS, PARTS, strict=True)}
    for task, other in zip(own, one, strict=True):
        assert [part[action] for action in task.spec["shortcut"]] == other.spec["shortcut"]
        assert task == dataclasses.replace(other, spec=task.spec)


def test_a_same_shortcut_has_the_verbs_of_the_orders_routine_and_the_pieces_objects() -> None:
    shortcut = section({"length": 9, "skills": "same"}).shortcut
    piece, other = ("red", "oak", "star"), ("red", "oak", "moon")
    found = [draw_shortcut(shortcut, piece, order, 3) for order in (("saw", "wax"), ("carve", "bend"))]
    verbs = [[action.split()[0] for action in actions] for actions in found]
    assert verbs[0] == ["go", "take", "saw", "go", "take", "wax", "deliver", "go", "take"]
    assert verbs[1] == ["go", "take", "carve", "go", "take", "bend", "deliver", "go", "take"]
    assert [action.split()[1] for action in found[0]] == [action.split()[1] for action in found[1]]
    assert draw_shortcut(shortcut, other, ("saw", "wax"), 3) != found[0]
    assert {*found[0], *found[1]} <= {action.thing for action in machine_actions("same")}


def test_the_same_seed_makes_the_same_tasks_and_another_seed_others(
    parameters: WorkshopParameters, tasks: list[Task]
) -> None:
    assert made(parameters) == tasks
    other = made(parameters, seed=8)
    assert len({task.task_id for task in other} & {task.task_id for task in tasks}) < 8
    given_ = tasks[0].spec
    assert draw_shortcut(parameters.shortcut, given_["piece"], given_["order"], 7) == given_["shortcut"]


def test_a_split_alone_can_be_made(parameters: WorkshopParameters, tasks: list[Task]) -> None:
    alone = made(parameters, sizes=SplitSizes(0, 0, 32))
    assert alone == of(tasks, "test")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            SplitSizes(128, 1, 0),
            "tasks.validation: are 128 and 1, can be at most 128 together",
        ),
        (SplitSizes(120, 8, 4), "are 120 and 8, can be at most 127 together"),
        (SplitSizes(15, 0, 0), r"tasks.train: is 15, must be at least 16.*environment.pieces \(16\)"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    parameters: WorkshopParameters, sizes: SplitSizes, message: str
) -> None:
    with pytest.raises(TaskError, match=message):
        made(parameters, sizes=sizes)


def test_all_pairs_of_the_section_can_be_training_tasks(parameters: WorkshopParameters) -> None:
    assert len(made(parameters, sizes=SplitSizes(128, 0, 0))) == 128
    no_other_piece, no_other_order = section(pieces=1728), section(orders=56)
    with pytest.raises(TaskError, match=r"tasks.unseen: the stratum unseen/piece has fewer tasks"):
        list(make_tasks(no_other_piece, SplitSizes(0, 0, 0, 1), 0))
    with pytest.raises(TaskError, match=r"tasks.test: the stratum unseen/order has fewer tasks"):
        list(make_tasks(no_other_order, SplitSizes(56, 0, 4), 0))


def test_repeated_overlapping_foreign_and_malformed_tasks_are_refused(task: Task) -> None:
    check_tasks([task])
    with pytest.raises(TaskError, match="1 tasks repeat a task"):
        check_tasks([task, task])
    with pytest.raises(
        TaskError, match="splits overlap: task red-oak-star:saw,paint is in train and in test"
    ):
        check_tasks([task, dataclasses.replace(task, split="test")])
    with pytest.raises(TaskError, match="belongs to 'countdown'"):
        check_tasks([dataclasses.replace(task, environment="countdown")])
    for spec, message in (
        ({"target": 5}, "has no piece and order"),
        ({"piece": ["oak", "red", "star"], "order": ["saw"]}, "must be a colour, a wood and a mark"),
        ({"piece": ["red", "oak"], "order": ["saw"]}, "must be a colour, a wood and a mark"),
        ({"piece": ["red", "oak", "star"], "order": ["saw", "saw"]}, "must be different ones of saw"),
        ({"piece": ["red", "oak", "star"], "order": []}, "must be different ones of saw"),
    ):
        with pytest.raises(TaskError, match=message):
            check_tasks([dataclasses.replace(task, spec=spec)])


def test_sizes_default_to_no_unseen_tasks(parameters: WorkshopParameters, tasks: list[Task]) -> None:
    without = made(parameters, sizes=dataclasses.replace(SIZES, unseen=0))
    assert without == [task for task in tasks if task.split != "unseen"]


def test_the_shortcut_of_a_mark_wins_on_a_share_of_new_pieces() -> None:
    shortcut = {"length": 4, "skills": "own", "of": "mark", "new_pieces": 0.5}
    tasks = made(section(shortcut=shortcut), 3, SIZES)
    new = {tuple(task.spec["piece"]): task.spec["shortcut"] for task in of(tasks, "test", "unseen")}
    lent = {piece: found for piece, found in new.items() if found}
    assert 0.25 < len(lent) / len(new) < 0.75
    of_mark = {task.spec["piece"][2]: task.spec["shortcut"] for task in of(tasks, "train")}
    assert len({tuple(found) for found in of_mark.values()}) == len(of_mark) == len(ATTRIBUTES[2])
    assert all(found == of_mark[piece[2]] for piece, found in lent.items())


def test_a_new_piece_has_no_shortcut_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"new_pieces is 0\.5, must be 0 with of piece"):
        section(shortcut={"length": 4, "skills": "own", "new_pieces": 0.5})
