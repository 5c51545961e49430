"""The tables of our environments agree with the environments."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS
from skillpress.environments.calls.rules import read_rules
from skillpress.environments.calls.steps import acted
from skillpress.environments.section import projection_without_keys
from skillpress.logs.own_rules import find_rules
from skillpress.logs.trace import TracesError


def test_a_table_that_is_not_there_says_which_are() -> None:
    with pytest.raises(TracesError, match="alfworld, code_repair, notebook_qa, textworld_cooking"):
        find_rules("chess")


def played(actions: list[tuple[str, str | None]], observation: str = "") -> Trajectory:
    """An episode of (action, reason why it was refused)."""
    steps = tuple(
        Step((), (), (), "", action, NOTHING_HAPPENS if invalid else observation, invalid, ())
        for action, invalid in actions
    )
    return Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)


def agree(environment: str, episode: Trajectory) -> None:
    """The table gives the environment's own skills."""
    projection = projection_without_keys(environment)
    steps = [
        *chain.from_iterable(
            acted(step.action, step.observation, step.invalid is not None) for step in episode.steps
        )
    ]
    task = Task("t", environment, 0, {})
    assert list(TABLES[environment](steps)) == list(projection(task, episode))


TABLES = {
    name: read_rules(find_rules(name))
    for name in ("alfworld", "code_repair", "notebook_qa", "textworld_cooking")
}
REFUSED = st.sampled_from([None, "not_admissible"])
VERBS = (
    "go to", "open", "close", "look", "examine", "take", "move", "put", "heat", "cool", "clean", "use",
    "inventory", "examine cookbook", "eat", "chop", "cook", "xyzzy",
)  # fmt: skip
PHRASES = st.tuples(st.sampled_from(VERBS), st.sampled_from(["", " desk 1", " apple from fridge", " meal"]))
COMMANDS = (
    "ls -la",
    "cat gcd.py",
    "sed -i s/a/b/ gcd.py",
    "python gcd.py",
    "view",
    "str_replace",
    "",
    "ED x",
    "make",
)
CALLS = st.tuples(st.sampled_from(["bash", "edit", "test", "submit", "other"]), st.sampled_from(COMMANDS))
CELLS = (
    "search('x')", "print(read('x'))", "submit_final_answer(1)", "notepad.plan('x')",
    "notepad.add(search('x'))", "x = 1", "print(\"compared:\", read('x'))", "  ", "",
)  # fmt: skip


@given(st.lists(st.tuples(PHRASES, REFUSED)))
@pytest.mark.parametrize("environment", ["alfworld", "textworld_cooking"])
def test_our_tables_of_words_are_the_environments_own(environment: str, phrases) -> None:
    agree(environment, played([
        (verb + what, refused if what else "not_admissible") for (verb, what), refused in phrases
    ]))  # fmt: skip


@given(st.lists(st.tuples(CALLS, REFUSED)))
def test_code_repairs_table_is_the_environments_own(calls) -> None:
    agree("code_repair", played([
        (json.dumps({"tool": tool, **({"command": command} if tool in ("bash", "edit") else {})}), refused)
        for (tool, command), refused in calls
    ]))  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(CELLS), REFUSED)))
def test_notebooks_table_is_the_environments_own(cells) -> None:
    agree("notebook_qa", played(cells))
