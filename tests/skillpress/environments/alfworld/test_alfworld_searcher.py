"""The searcher's rule: its actions follow from the game's answers, and it wins from any state."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.environment import Alfworld, explorer_actions
from skillpress.environments.alfworld.games import Game, describe
from skillpress.environments.alfworld.memory import Memory
from skillpress.environments.alfworld.oracle import SearchingOracle
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.searcher import next_action

ROOM = Memory(("cabinet 2", "cabinet 1", "countertop 1", "fridge 1", "garbagecan 1", "sinkbasin 1"))


def game(task_type: str, wanted: str = "Mug", destination: str = "Cabinet") -> Game:
    return Game("", task_type, wanted, destination, 1)


SIMPLE, CLEAN, TWO = map(
    game, ("pick_and_place_simple", "pick_clean_then_place_in_recep", "pick_two_obj_and_place")
)


def test_it_looks_first_where_such_things_lie_open_and_opens_doors_later() -> None:
    """A mug may lie on a countertop or in a sink, in a cabinet or the fridge, and not in a garbage can."""
    order, memory = [], ROOM
    while action := next_action(SIMPLE, memory):
        place = action.removeprefix("go to ")
        order.append(place)
        memory = replace(memory, contents={**memory.contents, place: ()})
    assert order == ["countertop 1", "sinkbasin 1", "cabinet 2", "cabinet 1", "fridge 1", "garbagecan 1"]


def test_before_a_closed_door_it_opens_it() -> None:
    memory = replace(ROOM, place="fridge 1", closed=frozenset({"fridge 1"}))
    assert next_action(SIMPLE, memory) == "open fridge 1"


def test_what_it_has_seen_it_takes_and_what_it_holds_it_brings_where_it_belongs() -> None:
    there = replace(ROOM, contents={"countertop 1": ("egg 1", "mug 3", "mug 1")}, place="fridge 1")
    assert next_action(SIMPLE, there) == "go to countertop 1"
    assert next_action(SIMPLE, replace(there, place="countertop 1")) == "take mug 3 from countertop 1"
    held = replace(there, carrying="mug 3")
    assert next_action(SIMPLE, held) == "go to cabinet 2"
    arrived = replace(held, place="cabinet 2", closed=frozenset({"cabinet 2"}))
    assert next_action(SIMPLE, arrived) == "open cabinet 2"
    assert next_action(SIMPLE, replace(arrived, closed=frozenset())) == "move mug 3 to cabinet 2"


def test_what_is_to_be_clean_is_cleaned_first_and_once() -> None:
    held = replace(ROOM, carrying="mug 3", place="countertop 1")
    assert next_action(CLEAN, held) == "go to sinkbasin 1"
    assert next_action(CLEAN, replace(held, place="sinkbasin 1")) == "clean mug 3 with sinkbasin 1"
    assert next_action(CLEAN, replace(held, changes={"mug 3": "hot"})) == "go to sinkbasin 1"
    assert next_action(CLEAN, replace(held, changes={"mug 3": "clean"})) == "go to cabinet 2"


def test_of_two_things_the_second_is_sought_elsewhere_and_brought_to_the_first() -> None:
    """The goal asks for both in one receptacle, so it leaves alone what is already there."""
    first = replace(ROOM, contents={"cabinet 1": ("mug 1",), "countertop 1": ("mug 2",)}, place="cabinet 1")
    assert next_action(TWO, first) == "go to countertop 1"
    assert next_action(TWO, replace(first, carrying="mug 2", place="cabinet 2")) == "go to cabinet 1"
    assert next_action(SIMPLE, first) == "take mug 1 from cabinet 1", "one thing may come from there"


def test_a_thing_that_nobody_asked_for_is_put_down_where_it_may_lie() -> None:
    held = replace(ROOM, carrying="egg 1", place="cabinet 2")
    assert next_action(SIMPLE, held) == "go to countertop 1"
    assert next_action(SIMPLE, replace(held, place="sinkbasin 1")) == "move egg 1 to sinkbasin 1"


def test_a_lamp_is_sought_like_a_thing_and_used_with_the_thing_in_hand() -> None:
    look = game("look_at_obj_in_light", "CD", "DeskLamp")
    held = Memory(("bed 1", "desk 1", "drawer 1"), {"bed 1": ()}, carrying="cd 1", place="bed 1")
    assert next_action(look, held) == "go to desk 1"
    lit = replace(held, contents={"bed 1": (), "desk 1": ("desklamp 1",)}, place="desk 1")
    assert next_action(look, lit) == "use desklamp 1"


def test_where_everything_was_seen_in_vain_it_says_so() -> None:
    assert next_action(SIMPLE, replace(ROOM, contents=dict.fromkeys(ROOM.receptacles, ()))) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_was_done_before_its_advice_is_admissible_and_wins(
    environment: Alfworld, parameters: AlfworldParameters, six_tasks: list[Task], seed: int
) -> None:
    """Eight actions of a random explorer, then its own; a task has 50 steps."""
    advise, drawn = SearchingOracle(parameters).advise, random.Random(seed)
    for task in six_tasks:
        observation, info = environment.reset(task)
        for step in range(50):
            advised = advise(AgentState(task, observation, info))
            assert advised in info.admissible, (describe(task.spec["game"]).task_type, advised)
            action = drawn.choice(explorer_actions(info)) if step < 8 else advised
            observation, terminated, _, info = environment.step(action)
            if terminated:
                break
        assert info.won
