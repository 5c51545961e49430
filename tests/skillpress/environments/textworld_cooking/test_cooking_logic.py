"""The logic compared with TextWorld's: the same facts and admissible commands along whole games."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
import textworld

from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.design import HARD, SIMPLE, GameSettings
from skillpress.environments.textworld_cooking.games import DESIGN, GameCache
from skillpress.environments.textworld_cooking.interpreter import GameInterpreter
from skillpress.environments.textworld_cooking.logic import State, after, commands, happened, read_logic


def compare_with_textworld(cache: GameCache, settings: GameSettings, seed: int, steps: int) -> int:
    """Play a random game on both with the same commands; return the number of steps."""
    program = cache.program(settings, seed)
    stock = textworld.start(str(program), textworld.EnvInfos(admissible_commands=True, facts=True))
    logic, machine, random = read_logic(program.with_name(DESIGN)), GameInterpreter(), Random(seed)
    theirs = stock.reset()
    machine.start(program)
    state = logic.first
    for step in range(1, steps + 1):
        actions = logic.actions(state)
        assert list(commands(actions)) == theirs["admissible_commands"]
        assert state == facts_of(theirs)
        typed = random.choice(commands(actions))
        theirs, _, done = stock.step(typed)
        reply = machine.send(typed)
        assert (reply.won, reply.lost) == (theirs["won"], theirs["lost"])
        assert words(reply.text) == words(re.sub(r"\n>.*$", "", theirs["feedback"], flags=re.DOTALL))
        for event in reply.events:
            action = happened(event, actions)
            state = state if action is None else after(state, action)
        if done:
            return step
    return steps


def facts_of(theirs: textworld.GameState) -> State:
    return frozenset((fact.name, *(v.name for v in fact.arguments)) for fact in theirs["_facts"])


def words(text: str) -> list[str]:
    """The words without the lines about the score, which :class:`GameInterpreter` removes."""
    return re.sub(r"Your score has [^\n]*|You scored .*$", "", text, flags=re.DOTALL).split()


@pytest.mark.parametrize("name", ["cook_and_cut", "hard"])
def test_facts_commands_and_feedback_are_textworlds(
    name: str, cooking_games: Path, request: pytest.FixtureRequest
) -> None:
    task: Task = request.getfixturevalue(name)
    settings = GameSettings.from_spec(task.spec["settings"])
    assert compare_with_textworld(GameCache(cooking_games), settings, task.seed, steps=60) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8))
def test_facts_commands_and_feedback_are_textworlds_in_many_games(seed: int, cooking_games: Path) -> None:
    settings = HARD if seed % 2 else SIMPLE[seed // 2]
    assert compare_with_textworld(GameCache(cooking_games), settings, seed, steps=150) > 0
