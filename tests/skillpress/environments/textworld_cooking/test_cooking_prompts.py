"""Renderings: the compact one uses only words of its vocabulary, and both contain what is needed to act."""

from __future__ import annotations

import pytest

from skillpress.core.interface import AgentState, Turn
from skillpress.core.registry import PARSERS, lookup
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.memory import CookingState, Exit, Room
from skillpress.environments.textworld_cooking.memory_words import first_steps, memory_words, step_to_new
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.rollouts.agents.state_updates import Window

HISTORY = 3


def states(environment: TextWorldCooking, task: Task, actions: list[str]) -> list[AgentState]:
    """The agent's state before each action and after the last."""
    observation, info = environment.reset(task)
    found = [AgentState(task, observation, info)]
    for action in actions:
        observation, *_, info = environment.step(action)
        found.append(Window(HISTORY)(found[-1], "", info.action or action, observation, info))
    return found


def test_the_recipe_stands_in_both_prompts_from_the_moment_it_was_read(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    food = cook_and_cut.spec["ingredients"][0][0]
    before, after = states(environment, cook_and_cut, ["examine cookbook"])
    far = states(environment, cook_and_cut, ["examine cookbook", *["look"] * (HISTORY + 1)])[-1]
    short, long = (
        cooking_parameters.rendering("compact", HISTORY),
        cooking_parameters.rendering("text", HISTORY),
    )
    assert short.prompt(before).startswith("recipe unread | have nothing | room kitchen |")
    for state in (after, far):
        assert short.prompt(state).startswith("recipe ")
        assert f" {food} , prepare meal | have nothing" in short.prompt(state)
        assert f"the {food}, prepare meal." in long.prompt(state)
    assert "You have read the cookbook" not in long.prompt(before)


def test_a_prompt_that_goes_on_says_what_is_here_and_the_recipe_when_it_is_read(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    _, read, looked, wrong = states(environment, cook_and_cut, ["examine cookbook", "look", "xyzzy"])
    rendering = cooking_parameters.rendering("compact", HISTORY)
    assert rendering.continuation(read).startswith("recipe ")
    assert rendering.continuation(looked).startswith("have nothing | room kitchen |")
    assert rendering.continuation(wrong) == f"failed {rendering.continuation(looked)}"


def test_the_text_prompt_shows_the_last_turns_the_observation_and_the_admissible_actions(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    state = states(environment, cook_and_cut, ["look", "inventory", "look", "examine stove", "inventory"])[-1]
    prompt = cooking_parameters.rendering("text", HISTORY).prompt(state)
    assert "You have taken 5 steps" in prompt
    assert "Step 2:" not in prompt
    assert "and did 'look'." in prompt.partition("Step 3: ")[2].partition("Step 4: ")[0]
    assert "This is step 6. You see: You are carrying nothing." in prompt
    assert "'examine cookbook', " in prompt
    response = cooking_parameters.rendering("text", HISTORY).response("look", state.info)
    assert lookup(PARSERS, "tagged", "parser")(response).action == "inventory"


def test_the_papers_wording_has_its_budget_and_the_same_recipe(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    state = states(environment, cook_and_cut, ["examine cookbook"])[-1]
    own, told = (cooking_parameters.rendering(name, HISTORY).prompt(state) for name in ("text", "paper"))
    assert f"There are at most {cooking_parameters.max_steps} steps." in told
    recipe = own[own.index("You have read the cookbook") :]
    assert told.endswith(recipe) and own != told


def test_known_rooms_are_reached_by_the_shortest_known_way() -> None:
    rooms = {
        "kitchen": Room(
            "kitchen", (), (), (Exit("east", "", False, "corridor"), Exit("south", "", False, ""))
        ),
        "corridor": Room("corridor", (), (), (Exit("north", "", False, "bedroom"),)),
        "bedroom": Room("bedroom", (), (), (Exit("east", "", False, ""),)),
    }
    at = {name: CookingState(3, name, rooms, ()) for name in rooms}
    assert first_steps(at["kitchen"]) == {"corridor": "east", "bedroom": "east"}
    assert first_steps(at["bedroom"]) == {"corridor": "south", "kitchen": "south"}
    assert [step_to_new(at[name]) for name in rooms] == ["south", "west", "east"]


def test_the_way_to_the_unknown_is_told_where_it_begins_elsewhere_and_ends_with_the_last_room() -> None:
    rooms = {
        "kitchen": Room("kitchen", (), (), (Exit("east", "", False, ""), Exit("south", "", False, ""))),
        "corridor": Room("corridor", (), (), (Exit("west", "", False, "kitchen"),)),
    }
    memory = CookingState(3, "corridor", rooms, ())
    assert "way west ?" in " ".join(memory_words(memory)), "the kitchen's way east is the corridor's own"
    known = {**rooms, "garden": Room("garden", (), (), (Exit("north", "", False, "kitchen"),))}
    assert step_to_new(CookingState(5, "garden", known, ())) is None


def test_what_is_eaten_as_it_is_stands_in_the_recipe(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, eaten_as_it_is: Task
) -> None:
    food = eaten_as_it_is.spec["ingredients"][0][0]
    _, read = states(environment, eaten_as_it_is, ["examine cookbook"])
    assert (
        cooking_parameters.rendering("compact", HISTORY)
        .prompt(read)
        .startswith(f"recipe {food} , prepare meal |")
    )
    told = cooking_parameters.rendering("text", HISTORY).prompt(read)
    assert f"It asks for {food}. Its directions: prepare meal." in told


def test_words_of_no_command_are_shown_as_unknown(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    _, info = environment.reset(cook_and_cut)
    state = AgentState(cook_and_cut, "", info, (Turn("", "", "take the Ü sword"),))
    assert cooking_parameters.rendering("compact", 1).prompt(state).endswith("| past take ? ? ?")


def test_a_failed_action_is_marked(
    environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    rendering = cooking_parameters.rendering("compact", HISTORY)
    for action, ending in (("eat meal", "eat meal failed"), ("inventory", "inventory")):
        assert rendering.prompt(states(environment, cook_and_cut, [action])[-1]).endswith(f"| past {ending}")


@pytest.mark.parametrize("history", [0, HISTORY])
def test_where_refusals_are_not_shown_a_failed_action_leaves_the_prompt_as_it_was_but_for_the_past(
    history: int, environment: TextWorldCooking, cooking_parameters: CookingParameters, cook_and_cut: Task
) -> None:
    silent = cooking_parameters.model_copy(update={"show_refusals": False})
    rendering = silent.rendering("compact", history)
    before, after = states(environment, cook_and_cut, ["eat meal"])
    assert after.info.invalid
    past = " eat meal" if history else ""
    assert rendering.prompt(after) == rendering.prompt(before) + past
    assert rendering.continuation(after).startswith("failed "), "where what was answered stands before it"
    assert silent.vocabulary(history) == cooking_parameters.vocabulary(history)
