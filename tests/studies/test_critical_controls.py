"""The controls of SegCost and the namings, by brute force on tiny corpora, and the committed figures."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import machine_actions
from skillpress.skills.buffer import Success
from skillpress.skills.dictionaries import fit_each
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.shaping import Played
from studies.critical.controls.bigram import BigramBits, bits
from studies.critical.controls.calculate import RECORD, cells, named_preference, points, scored
from studies.critical.controls.distinct import DistinctSkills
from studies.critical.controls.known import (
    CONTROLS,
    NAMINGS,
    PHI,
    SEGCOST,
    SWEEP,
    SWEPT,
    changed,
    controls_table,
    read_controls,
    sweep_table,
)
from studies.critical.controls.named_workshop import NamedWorkshop
from studies.critical.controls.naming import Naming
from studies.critical.controls.other_tasks import OtherTasks
from studies.critical.controls.own_task import own_task
from studies.critical.controls.shuffled import Shuffled
from studies.critical.predictions import read_predictions

ALPHABET = ("a", "b", "c", "d")
SEQUENCES = [("a", "b", "a"), ("a", "b"), ("c",), ("a", "c", "b", "a")]


@pytest.fixture(scope="module")
def of_segcost() -> dict[str, dict[str, Any]]:
    """Cell to the parameters of SegCost's runs."""
    return cells()


def dictionary(corpus: list[tuple[str, ...]] = SEQUENCES) -> SkillDictionary:
    return fit(corpus, ALPHABET, 4)


def test_bigram_bits_are_those_of_the_counted_transitions() -> None:
    edged = [("", *sequence, "") for sequence in SEQUENCES]
    pairs = Counter(pair for sequence in edged for pair in pairwise(sequence))
    starts = Counter(skill for sequence in edged for skill in sequence[:-1])
    expected = [
        -log2(np.prod([pairs[pair] / starts[pair[0]] for pair in pairwise(sequence)])) for sequence in edged
    ]
    assert bits(SEQUENCES) == pytest.approx(expected)
    assert bits([("a", "b")] * 3) == [0.0] * 3, "what is certain needs no bits"


def test_a_batch_pays_its_bits_in_skills_and_failures_teach_no_transition() -> None:
    played = Played([True] * 4 + [False], [*SEQUENCES, ("d", "d")], [3, 2, 1, 4, 2])
    paid = BigramBits(10.0, 16)(played, dictionary())
    assert paid == pytest.approx([10 / 16 * each / log2(4) for each in bits(SEQUENCES)] + [0.0])
    assert BigramBits(10.0, 16)(played, None).tolist() == [0.0] * 5
    with pytest.raises(ValueError, match="must be trajectory"):
        BigramBits(10.0, 16).of_steps([("a",)], dictionary())


def test_distinct_skills_count_once_and_at_their_first_step() -> None:
    shaping = DistinctSkills(8.0, 16)
    played = Played([True, True, False], [("a", "b", "a"), (), ("c",)], [3, 1, 1])
    assert shaping(played, None).tolist() == [1.0, 0.0, 0.0]
    assert shaping.of_steps([("a",), (), ("b", "a", "c"), ("c",)], None).tolist() == [0.5, 0.0, 1.0, 0.0]


def test_a_shuffled_success_keeps_its_skills_and_the_seed_decides_their_order() -> None:
    batch = [Success(tuple("abcdabcd"), f"t{number}") for number in range(20)]
    first, again = (Shuffled(32, seed=3)(batch).judged for _ in range(2))
    assert first == again != batch
    assert [Counter(each.skills) for each in first] == [Counter(each.skills) for each in batch]
    assert len({each.skills for each in first}) > 10, "each success has an order of its own"
    assert Shuffled(32, seed=4)(batch).judged != first
    corpus = Shuffled(32, seed=3)
    corpus.push(batch)
    assert corpus.earlier == batch


def successes(**of_task: list[str]) -> list[Success]:
    """Successes under the dictionaries of their own tasks."""
    return [Success(tuple(each), task, task) for task, those in of_task.items() for each in those]


def test_a_task_is_cut_by_the_phrases_of_the_others_alone(of_segcost: dict[str, dict[str, Any]]) -> None:
    corpus = OtherTasks(64, seed=0)
    corpus.push(successes(one=["abab"] * 9, old=["cdcd"] * 9))
    batch = successes(one=["abab"] * 9, two=["dcdc"] * 9)
    skills = SkillParameters.model_validate(of_segcost["equal"]["skills"])
    found = fit_each(skills, corpus(batch), ALPHABET, 0)
    expected = {
        "one": fit(["cdcd"] * 9 + ["dcdc"] * 9, ALPHABET, 4),
        "two": fit(["abab"] * 18 + ["cdcd"] * 9, ALPHABET, 4),
    }
    assert {task: each.phrases for task, each in found.items()} == {
        task: each.phrases for task, each in expected.items()
    }
    assert found["one"].cost("abab") == 4, "its own repetition makes no phrase"


def test_without_another_task_there_is_no_phrase(of_segcost: dict[str, dict[str, Any]]) -> None:
    skills = SkillParameters.model_validate(of_segcost["equal"]["skills"])
    alone = fit_each(skills, OtherTasks(8, seed=0)(successes(one=["abab"] * 9)), ALPHABET, 0)
    assert alone["one"].learned == ()


def test_other_tasks_asks_for_a_dictionary_of_each_task() -> None:
    with pytest.raises(ValueError, match="it must be studies"):
        OtherTasks(8, seed=0)([Success(("a",), "one")])
    assert own_task(Task("one", "workshop", 0, {})) == "one"


@pytest.mark.parametrize(
    ("name", "machine", "expected"),
    [
        ("verb/own", "own", ["Walk", "Grab", "Saw", "Ship", "Pull"]),
        ("coarse/one", "own", ["Go", "Take", "Work", "Deliver", "Tinker"]),
        ("fine/own", "one", ["walk yard", "grab handsaw", "saw piece", "ship piece", "Pull"]),
        ("one/one", "one", ["Tinker"] * 5),
    ],
)
def test_a_naming_gives_the_same_actions_other_names(name: str, machine: Any, expected: list[str]) -> None:
    first = {"own": "pull lever", "one": "tinker cog"}[machine]
    naming = Naming(name, machine)
    found = [naming.skill(a) for a in ("walk yard", "grab handsaw", "saw piece", "ship piece", first)]
    assert found == expected
    assert set(found) <= set(naming.alphabet) and naming.skill("dance") is None


@pytest.mark.parametrize(("machine", "own"), [("own", 12), ("one", 12), ("same", 44)])
def test_a_shortcuts_actions_have_as_many_names_as_asked_for(machine: Any, own: int) -> None:
    actions = machine_actions(machine)
    for count, expected in {"one": 1, "1": 1, "3": 3, "12": 12, "own": own}.items():
        naming = Naming(f"verb/{count}", machine)
        assert len({naming.skill(action.text) for action in actions}) == expected


@pytest.mark.parametrize("name", ["verb", "verb/none", "finest/own", "fine/own/one"])
def test_an_unknown_naming_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be one of one, coarse, verb, fine, a slash"):
        Naming(name, "own")


@pytest.mark.parametrize(
    ("method", "naming"),
    [("segcost", "one/one"), ("segcost_verb_3", "verb/3"), ("segcost_fine_own", "fine/own")],
)
def test_a_trained_naming_is_the_calculated_one(method: str, naming: str) -> None:
    trained = read_predictions(RECORD, "further.json")["equal_names"][method]
    assert trained.preference == read_controls(RECORD)[SWEPT][naming][SEGCOST].preference


def test_a_named_workshop_refuses_an_unknown_naming_and_names_its_actions(
    of_segcost: dict[str, dict[str, Any]],
) -> None:
    values = dict(of_segcost[SWEPT]["environment"])
    named = NamedWorkshop.model_validate({**values, "naming": "one/one"})
    action = machine_actions(named.shortcut.skills)[0].text
    assert named.make_projection().skill(action) == "Tinker"
    with pytest.raises(ValueError, match="naming is 'two/one', must be one of one, coarse, verb, fine"):
        NamedWorkshop.model_validate({**values, "naming": "two/one"})


def test_the_names_of_the_cell_give_the_committed_predictions() -> None:
    known, controls = read_predictions(RECORD), read_controls(RECORD)
    own = {"compressible": "verb/one", "alike": PHI}
    for cell, of_naming in controls.items():
        for naming in (PHI, own.get(cell, "verb/own")):
            assert of_naming[naming][SEGCOST].preference == known[cell][SEGCOST].preference, (cell, naming)


@pytest.mark.parametrize("score", CONTROLS)
def test_the_committed_preferences_are_those_of_the_code(
    of_segcost: dict[str, dict[str, Any]], score: str
) -> None:
    found = named_preference(scored(of_segcost["repeated_short"], score), "coarse/one")
    known = read_controls(RECORD)["repeated_short"]["coarse/one"][score]
    assert known.preference == pytest.approx(found, abs=0.001)


def test_every_cell_naming_and_score_is_committed_and_in_a_table(
    of_segcost: dict[str, dict[str, Any]],
) -> None:
    known = read_controls(RECORD)
    assert all(score in known[cell][naming] for cell, naming, score in points(of_segcost))
    lines = list(controls_table(known))
    assert sum(line.startswith("| `equal` |") for line in lines) == 1 + len(NAMINGS)
    assert "–" not in "".join([*lines, *sweep_table(known)])
    assert len(SWEEP) == 24 and known[SWEPT]["one/one"][SEGCOST].sign == "0"
    assert {"noisy", "shorter"} <= set(changed(known))
