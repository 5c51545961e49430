"""φ for question answering: the skill of each cell."""

from __future__ import annotations

import pytest

from skillpress.environments.notebook_qa.skills import RULES, NotebookProjection


@pytest.mark.parametrize(
    ("code", "skill"),
    [
        ("notepad.plan.append('find the film')", "Plan"),
        ("hits = search('Silver Harbour', 3)\nhits", "Search"),
        ("search('a')\nprint(read('Silver Harbour'))", "Read"),
        ("notepad.facts.append(1931)", "Note"),
        ("1931 - 1875", "Compute"),
        ("for year in years:\n    print(year)", "Compute"),
        ("answer = read('x')[:9]\nsubmit_final_answer(answer)", "Answer"),
        ("research(1)", "Compute"),
        ("", None),
        (" \n", None),
    ],
)
def test_the_first_rule_that_fits_names_a_cell(code: str, skill: str | None) -> None:
    assert NotebookProjection().skill(code) == skill


def test_every_skill_of_the_alphabet_has_a_rule() -> None:
    assert {skill for _, skill in RULES} == set(NotebookProjection.alphabet)
