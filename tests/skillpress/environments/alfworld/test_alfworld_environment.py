"""The environment's answers, how episodes end, and that no text can break it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.actions import read_command
from skillpress.environments.alfworld.environment import Alfworld, AlfworldState, explorer_actions
from skillpress.environments.alfworld.games import GameError
from skillpress.environments.alfworld.parameters import AlfworldParameters

Walkthrough = Callable[[Task], list[str]]


def known(info_state: object) -> AlfworldState:
    assert isinstance(info_state, AlfworldState)
    return info_state


def test_the_walkthrough_wins_each_type(
    environment: Alfworld, six_tasks: list[Task], walkthrough: Walkthrough
) -> None:
    for task in six_tasks:
        first, info = environment.reset(task)
        assert known(info.state).goal in first
        *before, last = walkthrough(task)
        for action in before:
            _, terminated, truncated, info = environment.step(action)
            assert not (terminated or truncated or info.won or info.invalid)
        _, terminated, truncated, info = environment.step(last)
        assert (terminated, truncated, info.won, info.lost) == (True, False, True, None)
        with pytest.raises(RuntimeError, match="call reset first"):
            environment.step("look")


def test_both_grammars_put_things_down(
    environment: Alfworld, six_tasks: list[Task], walkthrough: Walkthrough
) -> None:
    task = six_tasks[0]
    *before, move = walkthrough(task)
    words = move.split()
    assert words[0] == "move"
    for wording in (move, *(" ".join(("put", *words[1:3], on, *words[4:])) for on in ("in/on", "in", "on"))):
        environment.reset(task)
        for action in before:
            environment.step(action)
        _, _, _, info = environment.step(f"  {wording.upper()} ")
        assert info.won
        assert info.action == move


@pytest.mark.parametrize(
    ("text", "command", "reason"),
    [
        ("go to drawer 1", "go to drawer 1", None),
        ("Go  to Drawer 1", "go to drawer 1", None),
        ("put soap 1 in/on toilet 1", "move soap 1 to toilet 1", None),
        ("put soap 1 to toilet 1", "put soap 1 to toilet 1", None),
        ("", None, "empty"),
        (" \n ", None, "empty"),
        ("go to\x00 drawer 1", None, "unprintable"),
        ("look\nlook", None, "unprintable"),
        ("\x1b[2Jlook", None, "unprintable"),
        ("look\ud800", None, "unprintable"),
        ("x" * 100_000, None, "too_long"),
        ("geh zur Tür", "geh zur tür", None),
    ],
)
def test_a_text_is_a_command_or_there_is_a_reason(text: str, command: str | None, reason: str | None) -> None:
    assert read_command(text) == (command, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("take fridge 1 from drawer 1", "not_admissible"),
        ("geh zur Tür", "not_admissible"),
        ("", "empty"),
        ("look\x00", "unprintable"),
        ("a " * 50_000, "too_long"),
    ],
)
def test_what_cannot_be_done_costs_a_step_and_changes_nothing(
    environment: Alfworld, six_tasks: list[Task], text: str, reason: str
) -> None:
    _, before = environment.reset(six_tasks[0])
    observation, terminated, truncated, info = environment.step(text)
    assert (observation, terminated, truncated, info.invalid) == ("Nothing happens.", False, False, reason)
    assert info.admissible == before.admissible
    assert known(info.state).memory == known(before.state).memory
    assert known(info.state).steps == 1


def test_every_admissible_action_is_carried_out(environment: Alfworld, six_tasks: list[Task]) -> None:
    drawn = random.Random(0)
    for task in six_tasks[:3]:
        _, info = environment.reset(task)
        for _ in range(20):
            observation, terminated, _, info = environment.step(drawn.choice(info.admissible))
            assert info.invalid is None
            assert observation != "Nothing happens."
            if terminated:
                break


def test_the_explorer_leaves_out_what_does_nothing(environment: Alfworld, six_tasks: list[Task]) -> None:
    _, info = environment.reset(six_tasks[0])
    assert set(info.admissible) - set(explorer_actions(info)) == {"help", "inventory", "look"}


def test_environments_played_in_turns_do_not_disturb_each_other(
    environment: Alfworld, parameters: AlfworldParameters, six_tasks: list[Task], walkthrough: Walkthrough
) -> None:
    other = Alfworld(parameters)
    tasks = six_tasks[1], six_tasks[4]
    alone = [[environment.reset(task), *map(environment.step, walkthrough(task))] for task in tasks]
    in_turns = [[environment.reset(tasks[0])], [other.reset(tasks[1])]]
    steps = [walkthrough(task) for task in tasks]
    for number in range(max(map(len, steps))):
        for playing, said, actions in zip((environment, other), in_turns, steps, strict=True):
            said += [playing.step(actions[number])] if number < len(actions) else []
    assert in_turns == alone


def true_facts(environment: Alfworld, *predicates: str) -> list[tuple[str, ...]]:
    """(predicate, names of its arguments) of every true fact of these predicates; agents do not see them."""
    state = environment._engine._engine.state
    names = state["_entity_infos"]
    return sorted(
        (fact.name, *(names[thing.name].name.strip() for thing in fact.arguments))
        for fact in state["_facts"]
        if fact.name in predicates
    )


def test_the_record_agrees_with_the_engine_on_all_that_was_seen(
    environment: Alfworld, six_tasks: list[Task]
) -> None:
    drawn = random.Random(2)
    looked_into = 0
    for task in six_tasks:
        _, info = environment.reset(task)
        for _ in range(40):
            choices = explorer_actions(info)
            busy = [a for a in choices if a.split()[0] in ("open", "take", "move", "heat", "cool", "clean")]
            _, terminated, _, info = environment.step(
                drawn.choice(busy if busy and drawn.random() < 0.6 else choices)
            )
            memory = known(info.state).memory
            facts = true_facts(environment, "inreceptacle", "holds")
            assert [fact[2] for fact in facts if fact[0] == "holds"] == (
                [memory.carrying] if memory.carrying else []
            )
            for place, things in memory.contents.items():
                there = [thing for name, thing, where in facts if name == "inreceptacle" and where == place]
                assert sorted(things) == there
            looked_into += len(memory.contents)
            if terminated:
                break
    assert looked_into > 500


def damaged(tree: Path, task: Task, folder: Path, content: bytes) -> AlfworldParameters:
    """A data folder whose only game holds ``content``."""
    path = folder / "json_2.1.1" / task.spec["game"]
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return AlfworldParameters(name="alfworld", max_steps=50, data=str(folder))


def spoilt(tree: Path, task: Task, field: str, value: object) -> bytes:
    game = json.loads((tree / task.spec["game"]).read_text())
    return json.dumps({**game, field: value}).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree, task: (tree / task.spec["game"]).read_bytes()[:5000], "damaged, not JSON"),
        (lambda tree, task: b"\xff\xfe\x00", "damaged, not JSON"),
        (lambda tree, task: b'["a game"]', "not an ALFWorld game"),
        (lambda tree, task: b'{"pddl_domain": "(define (domain sokoban))"}', "not an ALFWorld game"),
        (lambda tree, task: spoilt(tree, task, "grammar", None), "grammar is NoneType, must be str"),
        (lambda tree, task: spoilt(tree, task, "grammar", "grammar :: nonsense"), "alfworld cannot load it"),
        (lambda tree, task: spoilt(tree, task, "pddl_problem", "(define (pro"), "alfworld cannot load it"),
        (lambda tree, task: spoilt(tree, task, "pddl_problem", "no PDDL"), "alfworld cannot load it"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_game_is_named(
    tree: Path, six_tasks: list[Task], tmp_path: Path, change: Callable[[Path, Task], bytes], message: str
) -> None:
    task = six_tasks[0]
    environment = Alfworld(damaged(tree, task, tmp_path, change(tree, task)))
    with pytest.raises(GameError, match=message) as raised:
        environment.reset(task)
    assert task.spec["game"] in str(raised.value)


def test_a_missing_game_and_a_foreign_task_are_named(environment: Alfworld, six_tasks: list[Task]) -> None:
    missing = six_tasks[0].spec["game"].replace("trial_", "trial_X")
    with pytest.raises(GameError, match=r"trial_X.*No such file"):
        environment.reset(Task("x", "alfworld", 0, {"game": missing}))
    with pytest.raises(GameError, match="not an ALFWorld game"):
        environment.reset(Task("54=1,2", "countdown", 0, {"target": 54}))
    observation, _ = environment.reset(six_tasks[0])
    assert "Your task is to" in observation
