"""The sections ``policy`` and ``reward`` make the parts that they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.registry import STATE_UPDATES
from skillpress.experiment.params import Params, load_params
from skillpress.rollouts.agents.learned_memory import MemoryText, MemoryWords
from skillpress.rollouts.agents.parameters import MemoryParameters, PolicyParameters
from skillpress.rollouts.agents.parsing import lenient, plain
from skillpress.rollouts.agents.store.parameters import StoreParameters
from skillpress.skills.shaping import SegmentationCost


@pytest.fixture(scope="module")
def params(repository: Path) -> Params:
    return load_params(repository / "params.yaml")


def policy(params: Params, **changes: object) -> PolicyParameters:
    return params.policy.model_copy(update=changes)


@pytest.mark.parametrize("name", sorted(set(STATE_UPDATES) - {"environment"}))
def test_a_state_update_keeps_as_many_turns_as_the_section_says(name: str, params: Params) -> None:
    memory = MemoryParameters(length=2, alphabet=8) if name == "learned" else None
    store = StoreParameters(shown=2, length=90) if name == "store" else None
    made = policy(params, state_update=name, history=3, memory=memory, store=store).make_state_update()
    assert made.turns == 3  # type: ignore[attr-defined]


def test_where_the_environment_shows_its_state_no_turn_is_shown(params: Params) -> None:
    section = policy(params, state_update="environment", history=3)
    assert section.turns_shown == 0
    assert section.make_state_update().turns == 0  # type: ignore[attr-defined]


def test_a_memory_is_words_of_a_compact_rendering_and_text_of_any_other(params: Params) -> None:
    section = policy(params, memory=MemoryParameters(length=2, alphabet=8))
    assert section.make_memory() == MemoryWords(2, 8)
    text = section.model_copy(update={"rendering": "text"})
    assert text.make_memory() == MemoryText(2)
    assert policy(params, memory=None).make_memory() is None


class Plain:
    parser = "plain"


def test_the_parser_is_the_renderings_own_unless_the_section_names_one(params: Params) -> None:
    assert policy(params, parser="rendering").make_parser(Plain()) is plain  # type: ignore[arg-type]
    assert policy(params, parser="lenient").make_parser(Plain()) is lenient  # type: ignore[arg-type]


def test_the_reward_section_makes_the_judgement_and_the_shaping(params: Params) -> None:
    section = params.reward.model_copy(update={"success": 7.0, "shaping_weight": 3.0, "shaping": "segcost"})
    assert section.make().success == 7.0
    assert section.make().measures == section.measures
    assert section.make_shaping(max_steps=30) == SegmentationCost(3.0, 30)
