"""Tasks: a ratio of 4:1 simple to hard games in every split, disjoint recipes and seeds, and marked traps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.textworld_cooking.design import HARD, SIMPLE, GameSettings
from skillpress.environments.textworld_cooking.games import PROGRAM
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.environments.textworld_cooking.tasks import (
    Designed,
    check_tasks,
    make_tasks,
    places,
    recipe_name,
    settings_of,
    split_of,
    task_of,
)

COOKINGS = ("raw", "fried", "roasted", "grilled")
CUTTINGS = ("uncut", "chopped", "sliced", "diced")
ingredients = st.lists(
    st.tuples(
        st.sampled_from(["egg", "carrot", "salt"]), st.sampled_from(COOKINGS), st.sampled_from(CUTTINGS)
    ),
    min_size=1,
    max_size=2,
)


def test_the_papers_evaluation_has_800_simple_and_200_hard_games() -> None:
    assert places(SplitSizes(2000, 100, 1000), 0.8) == Counter(
        {
            ("simple", "train"): 1600, ("hard", "train"): 400,
            ("simple", "validation"): 80, ("hard", "validation"): 20,
            ("simple", "test"): 800, ("hard", "test"): 200,
        }
    )  # fmt: skip


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.floats(0, 1))
def test_places_add_up_to_the_sizes(train: int, validation: int, test: int, share: float) -> None:
    wanted = places(SplitSizes(train, validation, test), share)
    for split, size in (("train", train), ("validation", validation), ("test", test)):
        assert sum(number for (_, place), number in wanted.items() if place == split) == size


def test_simple_games_take_turns_in_what_must_be_done_and_hard_ones_are_alike() -> None:
    assert {settings_of("simple", number) for number in range(4)} == set(SIMPLE)
    assert {settings_of("hard", number) for number in range(4)} == {HARD}


@given(ingredients)
def test_a_recipes_split_does_not_depend_on_the_order_of_its_ingredients(
    recipe: list[tuple[str, str, str]],
) -> None:
    assert split_of(recipe) == split_of(recipe[::-1])
    assert split_of(recipe) in ("train", "validation", "test")


def test_half_of_all_recipes_are_for_training_and_a_quarter_each_for_the_rest() -> None:
    counts = Counter(
        split_of([(f"food {number}", cooked, cut)])
        for number in range(250)
        for cooked in COOKINGS
        for cut in CUTTINGS
    )
    assert counts["train"] == pytest.approx(2000, abs=150)
    assert counts["validation"] == pytest.approx(1000, abs=120)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Task], Path]:
    folder = tmp_path_factory.mktemp("made")
    section = CookingParameters(name="textworld_cooking", max_steps=40, games=str(folder), simple_share=0.75)
    return list(make_tasks(section, SplitSizes(4, 1, 4), seed=5)), folder


def test_the_splits_are_filled_compiled_and_pass_their_own_check(made: tuple[list[Task], Path]) -> None:
    tasks, folder = made
    assert Counter((task.split, task.stratum) for task in tasks) == {
        ("train", "simple"): 3, ("train", "hard"): 1, ("validation", "simple"): 1,
        ("test", "simple"): 3, ("test", "hard"): 1,
    }  # fmt: skip
    assert len(list(folder.rglob(PROGRAM))) == len(tasks) == len({task.task_id for task in tasks})
    check_tasks(tasks)


def test_a_tasks_row_says_what_its_game_is(made: tuple[list[Task], Path], tmp_path: Path, designed) -> None:
    tasks, _ = made
    write_tasks(tmp_path / "tasks.parquet", tasks)
    assert read_tasks(tmp_path / "tasks.parquet") == tasks
    for task in tasks:
        again = designed(GameSettings.from_spec(task.spec["settings"]), task.seed)
        assert task_of(again, task.split) == task
        says_cook = any(cooked != "raw" for _, cooked, _ in task.spec["ingredients"])
        assert task.spec["trap"] == (says_cook and not task.spec["settings"]["cook"])


def test_unseen_tasks_are_hard_games_of_recipes_that_no_other_split_has(
    made: tuple[list[Task], Path],
) -> None:
    """One more game is compiled; the others are unchanged in the cache."""
    others, folder = made
    section = CookingParameters(name="textworld_cooking", max_steps=40, games=str(folder), simple_share=0.75)
    tasks = list(make_tasks(section, SplitSizes(4, 1, 4, unseen=1), seed=5))
    check_tasks(tasks)
    assert tasks[: len(others)] == others
    (unseen,) = tasks[len(others) :]
    assert (unseen.split, unseen.stratum) == ("unseen", "hard")
    recipes = {recipe_name(task.spec["ingredients"]) for task in others}
    assert recipe_name(unseen.spec["ingredients"]) not in recipes
    assert split_of(unseen.spec["ingredients"]) == "test", "of the recipes that nobody trains on"


def test_foreign_tasks_shared_recipes_and_repeated_seeds_are_refused(
    designed: Callable[[GameSettings, int], Designed],
) -> None:
    task = task_of(designed(SIMPLE[0], 3), "train")
    twin = replace(task, seed=4, task_id="simple-4")
    check_tasks([task, twin])
    recipe = recipe_name(task.spec["ingredients"])
    with pytest.raises(TaskError, match=f"recipe '{recipe}' is in train and in test"):
        check_tasks([task, replace(twin, split="test")])
    with pytest.raises(TaskError, match="seed 3 of task simple-3 occurs twice"):
        check_tasks([task, task])
    with pytest.raises(TaskError, match="belongs to 'countdown'"):
        check_tasks([replace(task, environment="countdown")])
    with pytest.raises(TaskError, match="spec has no trap"):
        check_tasks([replace(task, spec={key: task.spec[key] for key in task.spec if key != "trap"})])
