"""TextWorld-Cooking: how games end, what is refused, and that they can be replayed."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.environment import TextWorldCooking, explorer_actions
from skillpress.environments.textworld_cooking.memory import CookingState
from tests.support.environments.episodes import play


def up_to_taking(task: Task) -> list[str]:
    """The walkthrough until the ingredient is in the player's hands."""
    (food, _, _) = task.spec["ingredients"][0]
    steps = task.spec["walkthrough"]
    return steps[: next(n for n, step in enumerate(steps, 1) if step.startswith(f"take {food}"))]


def memory(info: Info) -> CookingState:
    assert isinstance(info.state, CookingState)
    return info.state


@pytest.mark.parametrize("name", ["cook_and_cut", "trap", "hard"])
def test_the_walkthrough_wins(
    name: str, environment: TextWorldCooking, request: pytest.FixtureRequest
) -> None:
    task: Task = request.getfixturevalue(name)
    answers = play(environment, task, task.spec["walkthrough"])
    assert len(answers) == len(task.spec["walkthrough"])
    assert [info.action for *_, info in answers] == task.spec["walkthrough"]
    assert {info.invalid for *_, info in answers} == {None}
    observation, terminated, truncated, info = answers[-1]
    assert (info.won, info.lost, terminated, truncated) == (True, None, True, False)
    assert observation.endswith("*** The End ***")


def test_cooking_what_arrives_cooked_burns_it_though_the_cookbook_says_cook(
    environment: TextWorldCooking, trap: Task
) -> None:
    food, cooked, _ = trap.spec["ingredients"][0]
    verb = {"fried": "fry", "roasted": "roast", "grilled": "grill"}[cooked]
    answers = play(environment, trap, [*up_to_taking(trap), f"cook {food} with stove"])
    assert f"{verb} the {food}" in memory(answers[-2][3]).recipe
    observation, terminated, _, info = answers[-1]
    assert (info.won, info.lost, terminated) == (False, "burned", True)
    assert observation.startswith(f"You burned the {food}!")


def test_the_wrong_appliance_is_wrong_processing(environment: TextWorldCooking, cook_and_cut: Task) -> None:
    food, cooked, _ = cook_and_cut.spec["ingredients"][0]
    wrong = "oven" if cooked == "fried" else "stove"
    observation, terminated, _, info = play(
        environment, cook_and_cut, [*up_to_taking(cook_and_cut), f"cook {food} with {wrong}"]
    )[-1]
    assert (info.won, info.lost, terminated) == (False, "wrong_processing", True)
    assert "burned" not in observation


def test_eating_the_ingredient_is_wrong_processing(environment: TextWorldCooking, cook_and_cut: Task) -> None:
    food = cook_and_cut.spec["ingredients"][0][0]
    *_, info = play(environment, cook_and_cut, [*up_to_taking(cook_and_cut), f"eat {food}"])[-1]
    assert info.lost == "wrong_processing"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("", "empty"),
        (" . ", "empty"),
        ("a" * 100_000, "too_long"),
        ("take egg\x00", "unprintable"),
        ("look\nlook", "unprintable"),
        ("take jalapeño", "not_ascii"),
        ("look. inventory", "several_commands"),
        ("take knife and cookbook", "several_commands"),
        ("take all", "several_commands"),
        ("restart", "unknown_verb"),
        ("exit", "unknown_verb"),
        ("quit", "unknown_verb"),
        ("save", "unknown_verb"),
        ("restore", "unknown_verb"),
        ("undo", "unknown_verb"),
        ("tw-print state", "unknown_verb"),
        ("again", "unknown_verb"),
        ("eat meal", "not_admissible"),
        ("take the moon", "not_admissible"),
    ],
)
def test_an_invalid_action_says_why_costs_a_step_and_changes_nothing(
    environment: TextWorldCooking, cook_and_cut: Task, action: str, reason: str
) -> None:
    _, before = environment.reset(cook_and_cut)
    _, terminated, truncated, info = environment.step(action)
    assert (info.invalid, terminated, truncated) == (reason, False, False)
    assert memory(info).steps == 1
    assert info.admissible == before.admissible and info.state_key == before.state_key
    assert memory(info).rooms == memory(before).rooms
    later = [environment.step(step)[3] for step in cook_and_cut.spec["walkthrough"]]
    assert later[-1].won and later[-1].state_key != before.state_key


def test_what_textworld_lists_and_the_game_declines_is_refused(
    environment: TextWorldCooking, cook_and_cut: Task
) -> None:
    *_, info = play(environment, cook_and_cut, [*up_to_taking(cook_and_cut), "prepare meal"])[-1]
    assert "prepare meal" in info.admissible
    assert (info.action, info.invalid) == ("prepare meal", "refused")


def test_other_wordings_are_reported_in_textworlds_own(
    environment: TextWorldCooking, cook_and_cut: Task
) -> None:
    taken = up_to_taking(cook_and_cut)
    short = [*taken[:-1], taken[-1].partition(" from ")[0].replace("take", "GET") + "."]
    *_, info = play(environment, cook_and_cut, short)[-1]
    assert (info.action, info.invalid) == (taken[-1], None)
    assert play(environment, cook_and_cut, ["read cookbook"])[-1][3].action == "examine cookbook"


def test_logic_and_game_agree_on_what_is_carried_however_it_was_taken(
    environment: TextWorldCooking, hard: Task
) -> None:
    random = Random(3)
    _, info = environment.reset(hard)
    for _ in range(15):
        takes = [action for action in info.admissible if action.startswith("take ")]
        others = [action for action in info.admissible if action.split()[0] in ("go", "open", "drop", "put")]
        action = random.choice(takes or others).partition(" from ")[0] if random.random() < 0.5 else ""
        *_, info = environment.step(action or random.choice(others))
        listed, *_, info = environment.step("inventory")
        carried = {str(item) for item in memory(info).carrying}
        told = listed.removeprefix("You are carrying: ").rstrip(".").replace(" and ", ", ").split(", ")
        assert carried == {
            item.removeprefix("an ").removeprefix("a ").removeprefix("some ") for item in told
        } - {"You are carrying nothing"}


def test_neither_score_nor_banner_nor_status_line_is_seen(environment: TextWorldCooking, hard: Task) -> None:
    introduction, _ = environment.reset(hard)
    seen = [introduction, *(answer[0] for answer in play(environment, hard, hard.spec["walkthrough"]))]
    assert introduction.startswith("You are hungry! Let's cook a delicious meal.")
    for text in seen:
        assert "score" not in text.lower()
        assert ">" not in text
        assert "$$" not in text
        assert "succeeded]" not in text
        assert "RESTART" not in text


def test_whatever_is_returned_can_be_pickled_and_is_small(environment: TextWorldCooking, hard: Task) -> None:
    answers = play(environment, hard, hard.spec["walkthrough"])
    assert pickle.loads(pickle.dumps(answers)) == answers
    assert max(len(pickle.dumps(info.state)) for *_, info in answers) < 5_000


@pytest.mark.parametrize("name", ["cook_and_cut", "hard"])
def test_the_memory_names_only_what_was_observed(
    name: str, environment: TextWorldCooking, request: pytest.FixtureRequest
) -> None:
    task: Task = request.getfixturevalue(name)
    random = Random(1)
    observation, info = environment.reset(task)
    seen = observation.lower()
    over = False
    while not over:
        state = memory(info)
        for room in state.rooms.values():
            held = [item for furniture in room.furniture for item in furniture.contents]
            doors = [way.door for way in room.exits] + [way.to for way in room.exits]
            names = [room.name, *(f.name for f in room.furniture), *doors]
            items = [str(item) for item in (*held, *room.floor)]
            assert all(name.lower() in seen for name in names)
            assert all(item in seen or item.split()[0] in ACHIEVED for item in items)
        assert all(line in seen for line in state.recipe)
        action = random.choice([*explorer_actions(info), "examine cookbook"])
        observation, terminated, truncated, info = environment.step(action)
        seen += "\n" + observation.lower()
        over = terminated or truncated


ACHIEVED = ("chopped", "sliced", "diced", "fried", "roasted", "grilled", "burned")
"""Words for what the player did: the game says ``You dice the carrot``, not yet ``a diced carrot``."""


def test_the_explorer_draws_from_what_does_something(environment: TextWorldCooking, hard: Task) -> None:
    _, info = environment.reset(hard)
    choices = explorer_actions(info)
    assert choices
    assert set(choices) < set(info.admissible)
    assert not {action.split()[0] for action in choices} & {"look", "inventory", "examine"}
