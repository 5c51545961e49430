"""The dictionary of the routines: no other cuts routines into fewer segments, with L = 4."""

from __future__ import annotations

from itertools import product

import pytest

from skillpress.core.registry import SEARCHES
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import SplitSizes, projection_without_keys
from skillpress.environments.workshop.oracle import routine
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit
from tests.support.environments.workshops import made, section

SEARCH = "skillpress.environments.workshop.routines:search_routines"
ALPHABET = projection_without_keys("workshop").alphabet


def sequences(subgoals: int, synonyms: int) -> list[tuple[str, ...]]:
    """The skills of routines of some tasks."""
    parameters = section(subgoals=subgoals, orders=8, synonyms=synonyms, max_steps=25)
    return [
        skills_of(task, routine(task, seed, parameters))
        for task in made(parameters, sizes=SplitSizes(48, 0, 0))
        for seed in range(3)
    ]


def skills_of(task: Task, actions: list[str]) -> tuple[str, ...]:
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    trajectory = Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)
    return tuple(skill for each in projection_without_keys("workshop")(task, trajectory) for skill in each)


def fitted(corpus: list[tuple[str, ...]], length: int = 4) -> SkillDictionary:
    return fit(corpus, ALPHABET, length, search=SEARCH)


@pytest.mark.parametrize("synonyms", [1, 3])
@pytest.mark.parametrize("subgoals", [1, 2, 3])
def test_a_routine_is_a_segment_for_each_subgoal_which_is_the_fewest_that_its_length_allows(
    subgoals: int, synonyms: int
) -> None:
    corpus = sequences(subgoals, synonyms)
    dictionary = fitted(corpus)
    for skills, cost in zip(corpus, dictionary.costs(corpus), strict=True):
        assert cost == (len(skills) - 1) // 3 == -(-len(skills) // 4)


def test_its_phrases_are_every_work_with_and_without_the_delivery() -> None:
    works = ("Saw", "Sand", "Drill", "Carve", "Bend", "Glue", "Paint", "Wax")
    assert set(fitted([("Go",)]).learned) == {
        *(("Go", "Take", work) for work in works),
        *(("Go", "Take", work, "Deliver") for work in works),
    }


def test_with_synonyms_it_has_all_combinations_of_those_that_occur() -> None:
    every = [("Walk", "Run", "Grab", "Lift", "Hand", "Ship")]
    assert len(fitted(every).learned) == 3 * 3 * 8 * (1 + 3)
    some = fitted([("Walk", "Take", "Saw", "Ship")]).learned
    assert set(some) == {
        phrase
        for go, deliver, work in product(("Go", "Walk"), ((), ("Deliver",), ("Ship",)), ALPHABET[6:14])
        for phrase in [(go, "Take", work, *deliver)]
    }


def test_shorter_phrases_keep_to_the_longest_that_is_allowed() -> None:
    assert {len(phrase) for phrase in fitted([("Go",)], 3).learned} == {3}
    assert fitted([("Go",)], 2).learned == ()


def test_it_is_named_from_outside_and_refuses_another_environments_skills() -> None:
    assert SEARCH in SEARCHES
    with pytest.raises(
        ValueError,
        match=r"the corpus has 2 skills, but the routines are phrases of the workshop's 30: use another",
    ):
        fit([("a", "b")], ("a", "b"), 4, search=SEARCH)
