"""Rules stated in a section: the table decides, then the verbs, over a fixed alphabet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skillpress.environments.text.rules import RuleTable, VerbProjection
from skillpress.environments.text.stated_rules import NO_RULES, StatedRules

RULES = [["examine cookbook", "Read"], ["examine *", "Look"]]
WORDS = st.lists(st.sampled_from(["examine", "cookbook", "go", "north", "look", ""]), max_size=4)


def test_a_rule_decides_before_a_verb_and_a_verb_before_nothing() -> None:
    projection = StatedRules(rules=RULES, verbs=["examine", "go"]).projection()
    found = [
        projection.skill(action)
        for action in ("examine cookbook", "examine me", "examine", "Go north", "fly")
    ]
    assert found == ["Read", "Look", "examine", "go", None]
    assert projection.alphabet == ("Read", "Look", "examine", "go")


@given(words=WORDS)
def test_one_list_alone_is_that_projection(words: list[str]) -> None:
    action = " ".join(words)
    table = RuleTable([(pattern, skill) for pattern, skill in RULES])
    assert StatedRules(rules=RULES).projection().skill(action) == table.skill(action)
    assert StatedRules(verbs=["go"]).projection().skill(action) == VerbProjection(["go"]).skill(action)


def test_without_rules_nothing_has_a_skill() -> None:
    assert NO_RULES.alphabet == () and NO_RULES.skill("go north") is None


@pytest.mark.parametrize(
    "wrong", [{"rules": [["go *"]]}, {"rules": [["", "Go"]]}, {"verbs": [""]}, {"verb": ["go"]}]
)
def test_a_rule_is_a_pattern_and_a_skill_and_nothing_is_empty(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StatedRules.model_validate(wrong)
