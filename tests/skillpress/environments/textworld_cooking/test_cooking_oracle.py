"""The oracle's demonstrations win, including those with detours, and its advice follows from the prompt."""

from __future__ import annotations

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.section import AdvisingOracle
from skillpress.environments.text.words import split_words
from skillpress.environments.textworld_cooking.actions import VERBS
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.oracle import CookingOracle
from skillpress.environments.textworld_cooking.parameters import CookingParameters


@pytest.fixture(scope="module")
def oracle(cooking_parameters: CookingParameters) -> CookingOracle:
    return CookingOracle(cooking_parameters)


GAMES = pytest.mark.parametrize("name", ["eaten_as_it_is", "trap", "cook_and_cut", "hard"])


@GAMES
@pytest.mark.parametrize(("rate", "seed"), [(0.0, 0), (0.3, 1), (0.3, 2)])
def test_every_step_is_carried_out_and_the_last_one_wins(
    name: str,
    rate: float,
    seed: int,
    oracle: CookingOracle,
    environment: TextWorldCooking,
    request: pytest.FixtureRequest,
) -> None:
    task: Task = request.getfixturevalue(name)
    said = oracle.cook(task, rate, seed)
    assert said is not None
    environment.reset(task)
    answers = [environment.step(action)[3] for action in said]
    assert [info.invalid for info in answers] == [None] * len(said)
    assert [info.won for info in answers] == [False] * (len(said) - 1) + [True]


@GAMES
def test_it_takes_no_more_steps_than_who_knows_where_everything_is(
    name: str, oracle: CookingOracle, request: pytest.FixtureRequest
) -> None:
    task: Task = request.getfixturevalue(name)
    assert len(oracle(task, 0.0, 0)) <= len(task.spec["walkthrough"])


@GAMES
@pytest.mark.parametrize("seed", range(3))
def test_the_compact_prompt_says_all_that_the_advice_does(
    name: str,
    seed: int,
    oracle: CookingOracle,
    environment: TextWorldCooking,
    cooking_parameters: CookingParameters,
    request: pytest.FixtureRequest,
) -> None:
    assert isinstance(oracle, AdvisingOracle)
    task: Task = request.getfixturevalue(name)
    rendering, known = cooking_parameters.rendering("compact", 0), {*VERBS, "from", "with"}
    observation, info = environment.reset(task)
    for action in oracle(task, 0.4, seed):
        state = AgentState(task, observation, info)
        prompt, advice = rendering.prompt(state), oracle.advise(state)
        assert advice is not None
        assert set(split_words(advice)) <= {*prompt.split(), *known}, (prompt, advice)
        observation, *_, info = environment.step(action)


def test_where_food_was_spoiled_it_does_not_know_what_to_do(
    oracle: CookingOracle, environment: TextWorldCooking, cook_and_cut: Task
) -> None:
    said = oracle(cook_and_cut, 0.0, 0)
    cut = next(step for step in said if step.startswith(("chop", "slice", "dice")))
    other = next(verb for verb in ("chop", "slice") if not cut.startswith(verb))
    observation, info = environment.reset(cook_and_cut)
    for action in said[: said.index(cut)]:
        observation, *_, info = environment.step(action)
    observation, *_, info = environment.step(" ".join([other, *cut.split()[1:]]))
    assert oracle.advise(AgentState(cook_and_cut, observation, info)) is None


def test_where_time_is_short_the_walkthrough_is_shown_and_none_that_is_too_long(
    cooking_parameters: CookingParameters, oracle: CookingOracle, hard: Task
) -> None:
    length = len(oracle(hard, 0.0, 0))
    walkthrough = hard.spec["walkthrough"][:length]  # as if it were that short
    shorter = Task(hard.task_id, hard.environment, hard.seed, {**hard.spec, "walkthrough": walkthrough[:-1]})
    tight = CookingOracle(cooking_parameters.model_copy(update={"max_steps": length - 1}))
    assert tight.cook(hard, 0.0, 0) is None
    assert tight(shorter, 0.0, 0) == walkthrough[:-1]
    with pytest.raises(
        TaskError, match=f"takes {len(hard.spec['walkthrough'])} steps, more than the {length - 1}"
    ):
        tight(hard, 0.0, 0)
