"""Messages between machines: values come back equal and of their types, and a message runs no code."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.alfworld.memory import Memory
from skillpress.environments.notebook_qa.desk import Desk
from skillpress.environments.notebook_qa.environment import NotebookState
from skillpress.environments.textworld_cooking.memory import CookingState, Exit, Furniture, Item, Room
from skillpress.rollouts.collection import StepResult
from skillpress.rollouts.remote.values import ForeignMessageError, read, written
from tests.support.integrations.served import SECTION, TASKS

PACKAGES = ("skillpress.core", "skillpress.rollouts.collection", "skillpress.environments")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: (
        st.lists(inside)
        | st.lists(inside).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inside)
        | st.frozensets(st.text() | st.integers())
    ),
)


@dataclass(frozen=True)
class Guarded:
    """Would notice that its code runs."""

    value: int

    def __post_init__(self) -> None:
        raise AssertionError("a message has run code")


def typed(value: object) -> object:
    """The value with the type of each of its parts; alone, 1, 1.0 and True would be equal."""
    if isinstance(value, list | tuple):
        return type(value), [typed(one) for one in value]
    if isinstance(value, dict):
        return [(typed(key), typed(one)) for key, one in value.items()]
    return type(value), value


@given(PLAIN)
def test_a_value_comes_back_equal_and_of_the_same_types(value: object) -> None:
    assert typed(read(written(value), ())) == typed(value)


@pytest.mark.parametrize(
    "state",
    [
        NotebookState("Who?", Desk("Who?", ("Ada",), pages={"P": ()}), 1, 2, {"plan": "ask"}),
        AlfworldState("put it", Memory(("shelf 1",), {"shelf 1": ("cup",)}, frozenset({"fridge 1"})), 3),
        CookingState(
            1,
            "hall",
            {
                "hall": Room(
                    "hall", (Furniture("table", False, (Item("egg"),)),), (), (Exit("north", "", False, ""),)
                )
            },
            (Item("knife"),),
        ),
    ],
    ids=lambda state: type(state).__name__,
)
def test_the_states_of_environments_come_back(state: object) -> None:
    answer = StepResult("seen", False, True, Info(measures={"f1": 0.5}, state=state))
    found = read(written(answer), PACKAGES)
    assert found == answer and repr(found) == repr(answer)


def test_actions_that_are_computed_when_read_come_back_as_a_tuple() -> None:
    environment = SECTION.make()
    _, info = environment.reset(TASKS[0])
    found = read(written(info), PACKAGES)
    assert found.admissible == tuple(info.admissible) and found.state == info.state


def test_no_code_of_a_class_runs() -> None:
    sent = json.dumps({"class": f"{__name__}:Guarded", "fields": {"value": 1}})
    assert read(sent, (__name__,)).value == 1


@pytest.mark.parametrize(
    "message",
    [
        '{"class": "subprocess:Popen", "fields": {"args": "true"}}',
        '{"class": "skillpress.environmentsX:State", "fields": {}}',
        '{"class": "skillpress.core.interface:Task", "fields": {}}',
        '{"class": "skillpress.core.interface:Environment", "fields": {}}',
        '{"class": "skillpress.core.interface:gymnasium.Env", "fields": {}}',
        '{"class": "skillpress.core.trajectory:RewardPart", "fields": {"name": "a"}}',
        '{"class": "skillpress.core.nowhere:Task", "fields": {}}',
        '{"class": 5, "fields": {}}',
        '{"map": [1]}',
        '{"set": [{"list": []}]}',
        '{"surprise": 1}',
        "[" * 100_000,
        "\x80not json",
    ],
    ids=lambda message: message[:60],
)
def test_anything_else_is_refused(message: str) -> None:
    with pytest.raises(ForeignMessageError):
        read(message, PACKAGES)


def test_a_state_that_cannot_travel_is_named() -> None:
    with pytest.raises(TypeError, match=r"_thread\.lock cannot be sent to another machine: make it of data"):
        written(Info(state=__import__("threading").Lock()))


def test_a_task_comes_back() -> None:
    task = Task(
        "t", "notebook_qa", 7, {"question": "Who?", "answers": ["Ada"], "deep": {"a": [1, (2,)]}}, "test"
    )
    assert read(written(task), ("skillpress.core.trajectory",)) == task
