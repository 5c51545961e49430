"""The oracle wins by both kinds of solution, as often by each as the section says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import Machine
from skillpress.environments.workshop.environment import Workshop
from skillpress.environments.workshop.oracle import WorkshopOracle, routine, shortcut
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.skillpress.environments.workshop.conftest import made, section


def won_by(task: Task, actions: list[str], parameters: WorkshopParameters) -> str:
    """The way in which these actions win; they must all be carried out."""
    environment = Workshop(parameters)
    environment.reset(task)
    for number, action in enumerate(actions, 1):
        _, terminated, _, info = environment.step(action)
        assert info.invalid is None and terminated == (number == len(actions))
    assert info.won
    (way,) = (name for name, value in info.measures.items() if value)
    return way


@settings(max_examples=12)
@given(
    machine=st.sampled_from([("own", "fixed"), ("own", "free"), ("same", "fixed"), ("one", "free")]),
    length=st.integers(1, 12),
    synonyms=st.integers(1, 3),
    seed=st.integers(0, 2**62),
)
def test_both_kinds_win_every_task_that_has_them(
    machine: tuple[Machine, str], length: int, synonyms: int, seed: int
) -> None:
    skills, order = machine
    parameters = section({"skills": skills, "order": order, "length": length}, synonyms=synonyms)
    for task in made(parameters)[::5]:
        assert won_by(task, routine(task, seed, parameters), parameters) == "by_routine"
        assert len(routine(task, seed, parameters)) == 3 * len(task.spec["order"]) + 1
        if task.spec["shortcut"]:
            assert won_by(task, shortcut(task, seed, parameters), parameters) == "by_shortcut"
            assert len(shortcut(task, seed, parameters)) == length
        else:
            with pytest.raises(TaskError, match="its piece has no shortcut"):
                shortcut(task, seed, parameters)


def test_no_shortcut_of_training_wins_an_unseen_task(
    tasks: list[Task], parameters: WorkshopParameters
) -> None:
    known = {tuple(task.spec["shortcut"]) for task in tasks if task.spec["shortcut"]}
    environment = Workshop(parameters)
    for task in tasks:
        if task.stratum.startswith("unseen"):
            for actions in known:
                environment.reset(task)
                _, terminated, _, info = environment.step(actions[0])
                assert terminated and info.lost == "broken"


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_shortcuts_is_the_sections_and_the_seed_decides(share: float, task: Task) -> None:
    parameters = section({"share": share})
    oracle = WorkshopOracle(parameters)
    ways = [won_by(task, oracle(task, 0.0, seed), parameters) for seed in range(1000)]
    assert ways == [won_by(task, oracle(task, 0.0, seed), parameters) for seed in range(1000)]
    found = ways.count("by_shortcut") / 1000
    assert abs(found - share) <= 4 * (share * (1 - share) / 1000) ** 0.5


def test_a_piece_without_a_shortcut_is_always_made_by_the_routine(task: Task) -> None:
    parameters = section({"share": 1.0})
    plain = Task("t", "workshop", 0, {**task.spec, "shortcut": []})
    assert won_by(plain, WorkshopOracle(parameters)(plain, 0.0, 1), parameters) == "by_routine"


@given(st.integers(0, 2**62), st.sampled_from([10, 11, 16]))
def test_a_detour_goes_to_a_wrong_room_first_where_the_budget_has_room(seed: int, max_steps: int) -> None:
    parameters = section({"share": 0.0}, max_steps=max_steps)
    task = made(parameters)[0]
    longer = Task("t", "workshop", 0, {**task.spec, "order": ["saw", "wax", "glue"]})
    for each, room in ((task, 2), (longer, 3)):
        plain, detoured = routine(each, seed, parameters), routine(each, seed, parameters, detour_rate=1.0)
        assert won_by(each, detoured, parameters) == "by_routine"
        added = len(detoured) - len(plain)
        assert added == min(room, max_steps - len(plain))
        needless = [
            action for action, then in pairwise(detoured)
            if action.startswith("go ") and then.startswith("go ")
        ]  # fmt: skip
        assert len(needless) == added


def test_synonyms_are_drawn_among_the_first_at_every_step(task: Task) -> None:
    for count, verbs in ((1, {"go"}), (2, {"go", "walk"}), (3, {"go", "walk", "run"})):
        said = {
            action.split()[0]
            for seed in range(40)
            for action in routine(task, seed, section(synonyms=count))
            if action.endswith((" yard", " studio"))
        }
        assert said == verbs


def test_a_free_shortcut_is_shown_in_several_orders(task: Task) -> None:
    shown = {tuple(shortcut(task, seed, section({"order": "free"}))) for seed in range(60)}
    assert len(shown) == 6 and {tuple(sorted(order)) for order in shown} == {
        tuple(sorted(task.spec["shortcut"]))
    }


def test_a_demonstration_that_does_not_fit_is_refused(task: Task) -> None:
    long = Task("t", "workshop", 0, {**task.spec, "order": ["saw", "wax", "glue", "sand"], "shortcut": []})
    with pytest.raises(TaskError, match="task t cannot be done within 12 steps"):
        WorkshopOracle(section(max_steps=12))(long, 0.0, 0)
