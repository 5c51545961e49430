"""Laws of every text environment of ours: episodes, prompts, responses, demonstrations and tasks.

What one environment alone promises is in its own folder.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState, Environment, Info
from skillpress.core.registry import PARSERS, STATE_UPDATES, lookup
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection, SplitSizes, environment_class
from tests.support.environments.episodes import play
from tests.support.environments.films import write_world
from tests.support.environments.workshops import SECTION as WORKSHOP

HISTORY = 3
ODD = ("", "   ", "what now?", "look\x00", "\x1b[2Jlook", "look\ud800", "a\nb", "x" * 30_000, "Ü [] {} 7")
"""Texts that are an action nowhere; a notebook takes them for code, which fails."""
COUNTDOWN = {"min_numbers": 3, "max_numbers": 4, "min_target": 10, "max_target": 999}
FIXED_WIDTH = ("countdown", "workshop")
"""Environments whose prompts have the same number of words at every step."""
SHORT_WORDS = ("countdown", "shop")
"""Environments whose policies from scratch say words that ``admissible`` does not list."""
SANDBOXED = ("code_repair", "notebook_qa")


@pytest.fixture(scope="module")
def section_of(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], EnvironmentSection]:
    """A small section of the environment with this name."""
    folder = tmp_path_factory.mktemp("laws")

    def keys(name: str) -> dict[str, Any]:
        if name in ("search", "notebook_qa"):
            return {"data": str(write_world(folder)), "indexes": str(folder / "indexes")}
        if name in ("alfworld", "code_repair"):
            return {"data": str(request.getfixturevalue(f"{name}_data"))}
        given: dict[str, dict[str, Any]] = {
            "countdown": COUNTDOWN, "workshop": {**WORKSHOP, "pieces": 12, "synonyms": 3},
            "shop": {"catalogue": 60, "indexes": str(folder)}, "textworld_cooking": {"games": str(folder)},
        }  # fmt: skip
        return given[name]

    more: dict[str, dict[str, Any]] = {
        "code_repair": {"test_seconds": 0.5, "episode_seconds": 60.0, "measure_edits": False},
        "notebook_qa": {"cell_seconds": 20.0, "reachable": True},
        "search": {"reachable": True, "top_k": 2},
    }

    def make(name: str) -> EnvironmentSection:
        given = {"name": name, "max_steps": 40, **keys(name), **more.get(name, {})}
        return environment_class(name).model_validate(given)

    made: dict[str, EnvironmentSection] = {}
    return lambda name: made.setdefault(name, make(name))


@pytest.fixture(
    params=[
        "alfworld", "code_repair", "countdown", "notebook_qa", "search", "shop", "textworld_cooking",
        "workshop",
    ]
)  # fmt: skip
def section(
    section_of: Callable[[str], EnvironmentSection], request: pytest.FixtureRequest
) -> EnvironmentSection:
    return section_of(request.param)


def sizes_of(section: EnvironmentSection) -> SplitSizes:
    return SplitSizes(12, 8, 4) if section.name == "workshop" else SplitSizes(2, 1, 2)


TASKS: dict[str, list[Task]] = {}


@pytest.fixture
def tasks(section: EnvironmentSection) -> list[Task]:
    if section.name not in TASKS:
        TASKS[section.name] = list(section.checked_tasks(sizes_of(section), 5))
    return TASKS[section.name]


@pytest.fixture
def environment(section: EnvironmentSection) -> Iterator[Environment]:
    made = section.make()
    with closing(made) if hasattr(made, "close") else nullcontext():
        yield made


def wander(
    section: EnvironmentSection, environment: Environment, task: Task, steps: int
) -> Iterator[AgentState]:
    """The agent's states while it draws from what the explorer may do and from odd texts."""
    drawn, update = Random(3), lookup(STATE_UPDATES, "window", "state update")(HISTORY)
    state, over = AgentState(task, *environment.reset(task)), False
    for _ in range(steps):
        yield state
        if over:
            return
        action = drawn.choice([*section.explorer_actions(state.info)] * 3 + ["what now?", "tomato " * 20])
        observation, terminated, truncated, info = environment.step(action)
        state, over = update(state, "", info.action or action, observation, info), terminated or truncated


def test_an_episode_is_recreated_from_its_task_and_actions_in_every_wording(
    section: EnvironmentSection, environment: Environment, tasks: list[Task]
) -> None:
    """Another episode lies between; what is returned crosses processes."""
    states = list(wander(section, environment, tasks[0], 12))
    canonical = [turn for state in states[1:] for turn in [state.history[-1].action]]
    first = play(environment, tasks[0], canonical)
    assert [answer[0] for answer in first] == [state.observation for state in states[1:]]
    play(environment, tasks[1], ["what now?"])
    assert play(environment, tasks[0], canonical) == first
    assert pickle.loads(pickle.dumps(first)) == first


def test_any_text_is_an_action_that_costs_a_step(
    section: EnvironmentSection, environment: Environment, tasks: list[Task]
) -> None:
    for text in ODD:
        ((observation, terminated, truncated, info),) = play(environment, tasks[0], [text])
        assert isinstance(observation, str) and not (terminated or truncated or info.won), text
        assert info.invalid or info.measures == {"executed": 0.0}, text


def test_an_episode_is_cut_off_after_its_budget_and_then_takes_no_more_actions(
    section: EnvironmentSection, tasks: list[Task]
) -> None:
    least = 10 if section.name == "workshop" else 3
    short = section.model_copy(update={"max_steps": least}).make()
    with closing(short) if hasattr(short, "close") else nullcontext():
        ends = [answer[1:3] for answer in play(short, tasks[0], ["what now?"] * (least + 1))]
        assert ends == [(False, False)] * (least - 1) + [(False, True)]
        for never_begun_or_over in (section.make(), short) if section.name not in SANDBOXED else ():
            with pytest.raises(RuntimeError, match=r"reset|over"):
                never_begun_or_over.step("look")


def test_all_that_is_said_in_play_is_in_the_vocabulary_and_within_its_lengths(
    section: EnvironmentSection, environment: Environment, tasks: list[Task]
) -> None:
    words, rendering = section.vocabulary(HISTORY), section.rendering("compact", HISTORY)
    known = set(words.words)
    assert len(known) == len(words.words) and all(len(word.split()) == 1 for word in words.words)
    assert {*words.stop_words, *words.numbers} <= known and rendering.history == HISTORY
    for task in tasks[:2]:
        for action in section.make_oracle()(task, 0.3, 0):
            said = rendering.response(action, Info()).split()
            assert set(said) <= known and not {*said[:-1]} & {*words.stop_words}, "it is not cut off"
        for state in wander(section, environment, task, 30):
            prompt, news = rendering.prompt(state).split(), rendering.continuation(state).split()
            assert {*prompt, *news} <= known
            assert len(prompt) <= words.state_words and len(news) <= (words.continuation_words or 0)
            assert len(prompt) == words.state_words or section.name not in FIXED_WIDTH
            for action in state.info.admissible if section.name not in SHORT_WORDS else ():
                assert set(rendering.response(action, replace(state.info, action=None)).split()) <= known


def test_demonstrations_win_without_an_invalid_action_and_are_read_back_in_every_rendering(
    section: EnvironmentSection, environment: Environment, tasks: list[Task]
) -> None:
    oracle = section.make_oracle()
    assert len({tuple(oracle(tasks[0], 0.5, seed)) for seed in range(8)}) > 1
    names = [name for name in ("compact", "brief", "text", "paper") if name in section.renderings()]
    for name, task in zip(names, tasks[:2] * 2, strict=False):
        rendering = section.rendering(name, HISTORY)
        parse = lookup(PARSERS, rendering.parser, "parser")
        said = oracle(task, 0.3, 1)
        assert said == oracle(task, 0.3, 1), "the seed decides"
        expected = play(environment, task, said)
        assert len(expected) == len(said) <= section.max_steps and expected[-1][3].won
        assert not any(info.invalid for *_, info in expected)
        environment.reset(task)
        for action, (observation, terminated, truncated, info) in zip(said, expected, strict=True):
            parsed = parse(rendering.response(action, info))
            assert parsed.invalid is None
            assert environment.step(parsed.action)[:3] == (observation, terminated, truncated)


def test_a_seed_makes_one_set_of_tasks_and_foreign_and_repeated_tasks_are_refused(
    section: EnvironmentSection, tasks: list[Task]
) -> None:
    assert list(section.make_tasks(sizes_of(section), 5)) == tasks
    others = list(section.make_tasks(sizes_of(section), 6))
    assert [task.task_id for task in others] != [task.task_id for task in tasks]
    section.check_tasks(tasks)
    with pytest.raises(TaskError, match=r"repeat|twice|two"):
        section.check_tasks([*tasks, tasks[0]])
    with pytest.raises(TaskError, match="belongs to 'elsewhere'"):
        section.check_tasks([replace(tasks[0], environment="elsewhere")])
