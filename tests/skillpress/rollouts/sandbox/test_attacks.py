"""The tables of attacks.md match the tests of attacks."""

from __future__ import annotations

import re
from pathlib import Path

from tests.skillpress.rollouts.programs import test_attacks_on_programs
from tests.skillpress.rollouts.sandbox import (
    test_attacks_by_messages,
    test_attacks_on_memory,
    test_attacks_on_secrets,
    test_attacks_on_time,
)
from tests.support.rollouts.attacking import NOT_HELD, OF_PROGRAMS

FILES = (
    test_attacks_on_time,
    test_attacks_on_memory,
    test_attacks_on_secrets,
    test_attacks_by_messages,
)
TABLE, _, IN_GVISOR = (
    Path(__file__).with_name("attacks.md").read_text(encoding="utf-8").partition("## In gVisor")
)
ROWS = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", TABLE, re.MULTILINE)
"""(attack, a program)."""


def test_every_attack_has_its_row_in_the_docs() -> None:
    tests = [
        name.removeprefix("test_attack_")
        for file in FILES
        for name in vars(file)
        if name.startswith("test_attack_")
    ]
    assert [name for name, _ in ROWS] == tests


def test_what_gvisor_does_not_hold_is_in_the_docs() -> None:
    rows = re.findall(r"^\| (`\w+`.*) \| (.*) \| (.*) \|$", IN_GVISOR, re.MULTILINE)
    named = [(name, *held) for names, *held in rows for name in re.findall(r"\w+", names)]
    for place, column in ((1, "gVisor"), (2, "program in gVisor")):
        assert {row[0] for row in named if row[place].startswith("**not held**")} == NOT_HELD[column]
    of_programs = {name for name, held in ROWS if not held.startswith("– ")}
    assert {row[0] for row in named} <= {name for name, _ in ROWS}
    assert {row[0] for row in named if row[2] != "–"} == {row[0] for row in named} & of_programs


def test_every_attack_is_tried_against_programs_or_the_docs_say_why_not() -> None:
    assert {name for name, held in ROWS if held == "the same"} == OF_PROGRAMS
    others = [name for name, held in ROWS if held != "the same" and not held.startswith("– ")]
    own = vars(test_attacks_on_programs)
    assert [name for name in others if f"test_attack_{name}" not in own and name not in own["TRIED"]] == []
