"""The workshop's section refuses what cannot be made, by key and value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.environments.workshops import section


@pytest.mark.parametrize(
    ("shortcut", "changed", "message"),
    [
        ({}, {"orders": 3}, "orders 3 must be from 4 to 56 with subgoals 2"),
        ({}, {"orders": 57}, "orders 57 must be from 4 to 56 with subgoals 2"),
        ({}, {"max_steps": 9}, r"max_steps 9 must be at least 10, the steps of a routine of subgoals \+ 1"),
        ({"length": 17, "skills": "one"}, {}, r"max_steps 16 must be at least shortcut.length \(17\)"),
        ({"length": 13}, {}, "length 13 must not exceed 12 with skills own"),
        ({"skills": "same", "order": "free"}, {}, "order is free, must be fixed with skills same"),
        ({"length": 0}, {}, "length"),
        ({"share": 1.5}, {}, "share"),
        ({"skills": "other"}, {}, "skills"),
        ({}, {"subgoals": 8}, "subgoals"),
        ({}, {"pieces": 11}, "pieces"),
        ({}, {"pieces": 1729}, "pieces"),
        ({}, {"synonyms": 4}, "synonyms"),
        ({}, {"rooms": 8}, "rooms"),
    ],
)
def test_a_wrong_section_is_refused_by_key_and_value(
    shortcut: dict[str, Any], changed: dict[str, Any], message: str
) -> None:
    section()
    with pytest.raises(ValidationError, match=message):
        section(shortcut, **changed)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    assert section(orders=56).orders == 56
    assert section(subgoals=7, orders=2, max_steps=25).longest_routine == 25
    assert section({"length": 12}).shortcut.length == 12
    assert section({"length": 16, "skills": "one"}, max_steps=16).shortcut.length == 16


def test_probes_have_unseen_tasks_unless_training_has_every_order() -> None:
    assert section(orders=55).why_nothing_unseen is None
    assert section(orders=56).why_nothing_unseen == (
        "environment.orders 56 includes all orders of subgoals 2; make it at most 55"
    )
    assert "make subgoals 2 or more" in str(section(subgoals=1, orders=8).why_nothing_unseen)
