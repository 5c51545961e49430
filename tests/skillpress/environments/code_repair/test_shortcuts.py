"""No task can be won by a table of the answers that the agent is shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.code_repair.shortcuts import Shortcuts, examples
from tests.skillpress.environments.code_repair.conftest import CASES, FAULTY, case

TABLED = """\
TABLE = {(1, 3, 2): 3, (5,): 5}
def largest(numbers):
    if tuple(numbers) in TABLE:
        return TABLE[tuple(numbers)]
    return FAULTY(numbers)
"""
LEFT_OUT = {
    "quixbugs/is_valid_parenthesization",
    *(f"humanevalfix/{number}" for number in (34, 38, 43, 104, 124, 137, 163)),  # of the training split
    *(f"humanevalfix/{number}" for number in (40, 50, 95, 125)),  # validation
    *(f"humanevalfix/{number}" for number in (54, 111, 144, 147)),  # test
}
"""Programs whose own bug a table repairs, found by running programs with such tables in this process."""


@pytest.fixture
def shortcuts(judge: Judge) -> Shortcuts:
    return Shortcuts(judge)


def test_a_bug_that_only_hidden_tests_show_is_a_task(program: Program, shortcuts: Shortcuts) -> None:
    assert not shortcuts.win(program)


def test_a_table_repairs_what_only_visible_tests_show(
    program: Program, shortcuts: Shortcuts, judge: Judge
) -> None:
    shown = replace(program, hidden=(*program.visible, case([5], 5), case([7, 7], 7)))
    assert shortcuts.win(shown)
    written = TABLED + FAULTY.replace("largest", "FAULTY")
    assert judge.verdict(replace(shown, name="shown"), written, hidden=True).perfect, (
        "as an agent would write it"
    )


def test_a_constant_behind_the_table_wins_where_all_other_answers_are_alike(
    program: Program, shortcuts: Shortcuts
) -> None:
    alike = replace(program, hidden=(*program.visible, case([3, 1], 3), case([2, 3], 3)))
    assert shortcuts.win(alike), "3 is among the answers shown"
    assert not shortcuts.win(replace(alike, name="mixed", hidden=(*alike.hidden, case([2, 4], 4))))


def test_examples_of_the_description_are_in_the_table(program: Program, shortcuts: Shortcuts) -> None:
    told = replace(
        program,
        hidden=tuple(case(*each) for each in CASES[:3]),
        description="The largest.\n\n>>> largest([-4, -2, -9])\n-2\n",
    )
    assert examples(told) == [Check("largest([-4, -2, -9])\n", ("largest",))]
    assert shortcuts.win(told)
    assert not shortcuts.win(replace(told, name="untold", description="The largest."))


def test_an_example_that_cannot_be_read_is_none(program: Program) -> None:
    assert examples(replace(program, description=">>>largest([1])\n1")) == []


@pytest.mark.slow
def test_the_programs_that_are_left_out(programs: dict[str, Program], shortcuts: Shortcuts) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = dict(zip(programs, threads.map(shortcuts.win, programs.values()), strict=True))
    assert {key for key, won in found.items() if won} == LEFT_OUT
