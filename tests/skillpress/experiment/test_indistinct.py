"""Variants that cannot differ are named before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.experiment.indistinct import buffer_in_words, warnings, why_alike
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.pipeline.settings import ROOT
from tests.support.experiment.killed_training import same_weights
from tests.support.experiment.small_training import train_small
from tests.support.programs.training_program import prepare


def variant(*overlays: str | dict[str, Any]) -> Params:
    values = read_yaml(ROOT / "params.yaml")
    for overlay in overlays:
        values = merge(
            values, overlay if isinstance(overlay, dict) else read_yaml(ROOT / "params" / f"{overlay}.yaml")
        )
    return check_params(values, source="test")


def skills(**values: Any) -> dict[str, Any]:
    return {"skills": values}


PAPER = {"training": {"tasks_per_step": 16, "rollouts_per_task": 8}}


def test_the_default_with_and_without_buffer_is_one_computation_from_half_of_a_step_on() -> None:
    """A step has 64 times 8 episodes, and the buffer 256 successes."""
    (line,) = warnings({"segcost": variant("segcost"), "no": variant("segcost_no_buffer")})
    assert line.startswith(
        "segcost and no differ in skills.buffer alone, and cannot differ in a step with 256"
    )
    assert "with 256 successes or more" in line and "a success of 50% of its 512 episodes on" in line
    assert "Set skills.buffer above 512, or skills.corpus buffer_and_batch" in line


def test_what_training_begins_with_counts_until_a_step_displaces_it() -> None:
    line = why_alike(variant(), variant(skills(start="empty"))) or ""
    assert line.startswith("differ in skills.start alone, and cannot differ in a step with 256 successes")
    rollouts = {"rollouts": {"tasks": 8}}
    line = why_alike(variant(), variant(rollouts)) or ""
    assert line.startswith("differ in rollouts.tasks alone, and cannot differ in a step with 256 successes")
    empty = skills(start="empty")
    assert why_alike(variant(empty), variant(empty, rollouts)) == (
        "cannot differ: rollouts.tasks decides no weight here"
    )
    keep = {"tasks": {"keep": {"at_least": 0.5, "at_most": 0.5}}}
    assert why_alike(variant("grpo", keep), variant("grpo", keep, rollouts)) is None
    assert why_alike(variant("grpo", keep), variant("grpo")) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("segcost", PAPER), ("segcost_no_buffer", PAPER)),
        ((PAPER,), (PAPER, skills(start="empty"))),
        (("skills_decayed",), ("skills_decayed", skills(start="empty"))),
        (("segcost_buffer",), ("segcost_no_buffer",)),
        ((skills(buffer=513),), (skills(buffer=0),)),
        ((skills(corpus="buffer_and_batch"),), (skills(buffer=0),)),
        (("skills_decayed",), (skills(buffer=0),)),
        (("segcost",), ("skills_each_task_once",)),
        (("bits", skills(search="singletons")), ("bits", skills(search="singletons", buffer=1024))),
        (("segcost",), ("grpo",)),
        (("segcost",), ("skills_refined",)),
        (("segcost",), ("segcost_no_buffer", {"training": {"learning_rate": 0.1}})),
    ],
)
def test_variants_that_may_differ_are_not_warned_of(one: Any, other: Any) -> None:
    assert why_alike(variant(*one), variant(*other)) is None
    assert why_alike(variant(*other), variant(*one)) is None


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (("grpo",), ("grpo", "skills_refined"), "skills.search"),
        (("grpo",), ("grpo", {"skills": {"buffer": 0}}), "skills.buffer"),
        (("grpo",), ("grpo", {"reward": {"shaping_weight": 1.0}}), "reward.shaping_weight"),
        (("grpo",), ({"reward": {"shaping_weight": 0.0}},), "reward.shaping and reward.shaping_weight"),
        (("grpo",), ("constant_penalty", {"reward": {"centred": True}}), "reward.shaping and reward.centred"),
        (("round_length",), ("round_length", "skills_frequency"), "skills.search"),
        (("segcost",), ("segcost", {"training": {"probe": {"every": 5, "tasks": 16}}}), "training.probe"),
        (("imitation",), ("imitation", "grpo"), "reward.shaping"),
        ((skills(buffer=1),), (skills(buffer=0),), "skills.buffer"),
        ((skills(search="singletons"),), (skills(search="singletons", buffer=1024),), "skills.buffer"),
        ((skills(buffer=0),), (skills(buffer=0, corpus="buffer_and_batch"),), "skills.corpus"),
    ],
)
def test_keys_that_decide_nothing_are_named(one: Any, other: Any, named: str) -> None:
    found = why_alike(variant(*one), variant(*other))
    assert found is not None and found.startswith("cannot differ: ") and named in found


def test_two_overlays_of_equal_values_cannot_differ() -> None:
    found = why_alike(variant(), variant("segcost"))
    assert found == "cannot differ: no parameter differs"


@pytest.mark.parametrize(
    ("overlays", "said"),
    [
        ((), "counts only in steps with fewer than 256 successes, a success below 50% of their 512 episodes"),
        (("segcost_buffer",), "a buffer of 1024, which the 512 episodes of a step never displace"),
        (("segcost_no_buffer",), "skills.corpus algorithm_1, a buffer of 0"),
    ],
)
def test_a_dry_run_says_when_the_buffer_counts(overlays: Any, said: str) -> None:
    assert said in buffer_in_words(variant(*overlays))


SMALL = """
processes: 1
environment: {max_steps: 8, max_numbers: 3}
"""
TRAINING = {"training": {"steps": 3, "learning_rate": 0.01}}


def test_variants_that_cannot_differ_leave_the_same_weights(tmp_path: Path) -> None:
    """The smoke experiment on easy puzzles. Its steps play 16 episodes, of which some win."""
    prepare(tmp_path, SMALL)
    small = yaml.safe_load(SMALL) | TRAINING
    never = {"reward": {"shaping": "round_length"}}
    pairs = {
        "buffer": (skills(buffer=0), skills(buffer=1)),
        "search": (never, merge(never, skills(search="refined", buffer=4))),
    }
    curves = {}
    for name, (one, other) in pairs.items():
        for which, overlay in (("one", one), ("other", other)):
            curves[name, which] = train_small(tmp_path, f"{name}-{which}", small, overlay)
        smoke = read_yaml(ROOT / "params" / "smoke.yaml")
        found = why_alike(variant(smoke, small, one), variant(smoke, small, other))
        assert found is not None and found.startswith("cannot differ: "), name
        assert same_weights(tmp_path, f"{name}-one", f"{name}-other"), name
    assert any(row["success"] for row in curves["buffer", "one"])
    assert not same_weights(tmp_path, "buffer-one", "search-one"), "trainings can differ"
    kept = train_small(tmp_path, "kept", small, skills(buffer=64))
    assert why_alike(variant(smoke, small), variant(smoke, small, skills(buffer=64))) is None
    assert any(row.get("dictionary/earlier_share", 0) for row in kept)
    assert not any(row.get("dictionary/earlier_share", 0) for row in curves["buffer", "other"])
