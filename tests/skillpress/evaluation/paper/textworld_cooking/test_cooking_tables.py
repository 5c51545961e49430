"""Tables 1, 2, 5 and 8 from episodes of real games, played by cooks with known habits."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.design import GameSettings, design, ingredients_of, is_trap
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.evaluation.paper.layout import paper_row
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.paper.textworld_cooking.tables import (
    PANELS,
    table_1_with_settings,
    table_2,
    table_5,
    table_8,
)
from skillpress.evaluation.statistics.episodes import evaluation_steps

NO_COOKING, COOKING = GameSettings(1, 1, False, False), GameSettings(1, 1, True, False)
TOOLS = {"fried": "stove", "roasted": "oven"}
THOUGHT = "The recipe says heat, so I use the STOVE."


def first_game(settings: GameSettings, says_cook: bool) -> Task:
    """The game of the smallest seed whose cookbook does, or does not, ask for frying or roasting."""
    for seed in range(1000):
        game = design(settings, seed)
        ingredients = ingredients_of(game)
        (_, cooked, _) = ingredients[0]
        if (cooked in TOOLS) if says_cook else cooked == "raw":
            spec = {
                "settings": asdict(settings),
                "ingredients": [list(i) for i in ingredients],
                "walkthrough": list(game.metadata["walkthrough"]),
                "trap": is_trap(settings, ingredients),
            }
            return Task(f"{says_cook}-{settings.cook}", "textworld_cooking", seed, spec, "test", "simple")
    raise AssertionError("no such game")


@pytest.fixture(scope="module")
def games() -> dict[str, Task]:
    return {
        "trap": first_game(NO_COOKING, True),
        "silent": first_game(NO_COOKING, False),
        "honest": first_game(COOKING, True),
    }


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> TextWorldCooking:
    folder = tmp_path_factory.mktemp("games")
    return TextWorldCooking(CookingParameters(name="textworld_cooking", max_steps=40, games=str(folder)))


def faithful(task: Task):
    """Follows the walkthrough, which knows which food is cooked already."""
    return lambda number, info: ("", task.spec["walkthrough"][number])


def literal(task: Task):
    """Does what the cookbook says, and thinks of the stove before: burns cooked food."""
    food, cooked, _ = task.spec["ingredients"][0]
    actions = list(task.spec["walkthrough"])
    if cooked in TOOLS:
        actions = [a for a in actions if not a.startswith("cook")]
        taken = next(i for i, a in enumerate(actions) if a.startswith(f"take {food}"))
        actions.insert(taken + 1, f"cook {food} with {TOOLS[cooked]}")
    return lambda number, info: (
        THOUGHT if actions[number].startswith("cook") else "Go on.",
        actions[number],
    )


def idle(task: Task):
    """Thinks of cooking all the time and never does anything."""
    return lambda number, info: (THOUGHT, "look")


@pytest.fixture(scope="module")
def played(play, environment, games):
    """Habit to the play of all three games with it."""
    tasks = {task.task_id: task for task in games.values()}

    def by(habit) -> MethodEpisodes:
        episodes = [play(environment, task, habit(task)) for task in games.values()]
        return MethodEpisodes(evaluation_steps(rollout_frame(episodes)), tasks)

    return {habit.__name__: by(habit) for habit in (faithful, literal, idle)}


def figures(table, play: MethodEpisodes):
    return {figure.key: figure for figure in table(play)}


def test_the_trap_is_a_game_that_cooking_loses(played, games):
    outcomes = dict(played["literal"].episodes.select("task_id", "outcome").iter_rows())
    assert outcomes == {
        games["trap"].task_id: "burned", games["silent"].task_id: "won", games["honest"].task_id: "won",
    }  # fmt: skip
    assert played["faithful"].episodes["won"].all()


def test_table_5_tells_thinking_of_cooking_from_cooking(played, games):
    found = figures(table_5, played["literal"])
    steps = dict(played["literal"].episodes.select("task_id", "length").iter_rows())[games["trap"].task_id]
    assert found["thought_cook"].value == pytest.approx(1 / steps)
    assert found["cook_given_thought"].value == 1
    assert (found["cook_emission_trap"].value, found["cook_emission_trap"].episodes) == (1, 1)
    assert (found["cook_emission_silent"].value, found["cook_emission_silent"].episodes) == (0, 1)
    found = figures(table_5, played["idle"])
    assert (found["thought_cook"].value, found["cook_given_thought"].value) == (1, 0)
    assert found["cook_emission_trap"].value == 0
    found = figures(table_5, played["faithful"])
    assert (found["thought_cook"].value, found["cook_given_thought"].value) == (0, None)


def test_tables_2_and_8_tell_how_failures_ended_and_how_long_they_took(played, games):
    literal, idle = played["literal"], played["idle"]
    assert {f.key: f.value for f in table_2(literal)}["failures_burned"] == 1
    found = figures(table_8, literal)
    assert (found["failures_burned"].value, found["failures_timeout"].value) == (1, 0)
    assert found["failures_wrong_processing"].value == 0
    assert found["failure_length"].value == games["trap"].spec["walkthrough"].index("prepare meal") + 1
    found = figures(table_8, idle)
    assert (found["failure_length"].value, found["failures_timeout"].value) == (40, 1)
    assert found["success_length"].value is None


def test_the_rows_are_those_that_the_paper_printed(played, printed_rows):
    for panel in PANELS:
        keys = [figure.key for figure in panel.figures(played["literal"])]
        printed = printed_rows(panel.table, "textworld_cooking")
        assert keys == [key for key in printed if key != "hard"]  # the games here are simple ones


def test_simple_and_hard_games_have_rows_of_their_own_and_add_up(outcomes):
    """Four simple games and a hard one, as in the paper's 4:1."""
    steps = evaluation_steps(outcomes({"a": "111", "b": "110", "c": "100", "d": "111", "e": "010"}))
    tasks = {name: Task(name, "c", 0, {}, "test", "hard" if name == "e" else "simple") for name in "abcde"}
    found = {f.key: (f.value, f.episodes) for f in table_1_with_settings(MethodEpisodes(steps, tasks))}
    assert found == {
        "all": (pytest.approx(10 / 15), 15), "simple": (9 / 12, 12), "hard": (pytest.approx(1 / 3), 3)
    }  # fmt: skip


def test_the_papers_settings_agree_with_its_table_1():
    """4 simple games to a hard one (appendix D): 0.8 x 99.8 + 0.2 x 9.0 = 81.64, printed 81.73."""
    for method in ("segcost", "segcost_no_buffer"):
        simple, hard, whole = (
            float(paper_row(1, "textworld_cooking", key)[method].split(" ")[0])
            for key in ("simple", "hard", "all")
        )
        assert 0.8 * simple + 0.2 * hard == pytest.approx(whole, abs=0.15)
