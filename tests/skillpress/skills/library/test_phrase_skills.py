"""New skills from the dictionary: what successes do and failures do not, by hand."""

from __future__ import annotations

import pytest

from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.library.library import GENERAL, SkillLibrary, Version
from skillpress.skills.library.phrases import PlayedEpisode, in_words, phrase_skills

DICTIONARY = SkillDictionary(
    alphabet=("A", "B", "C"),
    max_phrase_length=2,
    phrases=(("A",), ("B",), ("C",), ("A", "B"), ("B", "C"), ("C", "C")),
    counts=(0, 0, 0, 1, 1, 1),
    sequences=3,
    search="greedy",
    seed=0,
)


def played(episode: str, task_class: str, won: bool, skills: str) -> PlayedEpisode:
    return PlayedEpisode(episode=episode, task_class=task_class, won=won, skills=tuple(skills))


def names(library: SkillLibrary, *episodes: PlayedEpisode, most: int = 9) -> list[tuple[str, str]]:
    return [
        (skill.task_class, "".join(skill.phrase))
        for skill in phrase_skills(library, episodes, DICTIONARY, most)
    ]


EPISODES = (
    played("1", "x", True, "ABBC"),  # AB BC
    played("2", "x", False, "BCBCA"),  # BC BC A
    played("3", "y", True, "ABCC"),  # AB CC
    played("4", "y", False, "CCC"),  # CC C
)


def test_a_phrase_is_added_where_it_is_a_larger_part_of_successes_than_of_failures() -> None:
    # All tasks: AB is 2 of 4 segments of successes and 0 of 5 of failures, and both classes use it: general.
    # x: BC is 1 of 2 of successes and 2 of 3 of failures. y: CC is 1 of 2 and 1 of 2. Neither is better.
    found = phrase_skills(SkillLibrary(), EPISODES, DICTIONARY, 9)
    (general,) = found
    assert (general.task_class, general.phrase, general.uses) == (GENERAL, ("A", "B"), 2)
    assert general.failures == ("2", "4"), "because of every failure"
    assert general.why == "50.0% of the segments of successes, 0.0% of those of failures"


def test_what_one_class_alone_does_is_for_that_class_and_because_of_its_failures() -> None:
    better = (
        *EPISODES[:3],
        played("4", "y", False, "C"),
    )  # now CC is 1 of 2 of successes, 0 of 1 of failures
    found = phrase_skills(SkillLibrary(), better, DICTIONARY, 9)
    assert [(s.task_class, s.phrase) for s in found] == [(GENERAL, ("A", "B")), ("y", ("C", "C"))]
    assert found[1].failures == ("4",)


def test_without_a_failure_nothing_is_added_and_a_class_without_one_gets_nothing() -> None:
    assert names(SkillLibrary(), *(each for each in EPISODES if each.won)) == []
    assert names(SkillLibrary(), EPISODES[0], EPISODES[1], EPISODES[2]) == [(GENERAL, "AB")]


def test_where_one_class_of_several_succeeds_nothing_is_general() -> None:
    episodes = (played("1", "x", True, "AB"), played("2", "x", False, "C"), played("3", "y", False, "B"))
    assert names(SkillLibrary(), *episodes) == [("x", "AB")]
    assert names(SkillLibrary(), *episodes[:2]) == [(GENERAL, "AB")], "with one class there is nothing else"


def test_the_largest_differences_come_first_and_what_is_known_is_left_out() -> None:
    episodes = (played("1", "x", True, "ABABBCCC"), played("2", "x", False, "BCA"))  # AB AB BC CC; BC A
    # AB 2/4 - 0, CC 1/4 - 0, BC 1/4 - 1/2
    assert names(SkillLibrary(), *episodes) == [(GENERAL, "AB"), (GENERAL, "CC")]
    assert names(SkillLibrary(), *episodes, most=1) == [(GENERAL, "AB")]
    first = phrase_skills(SkillLibrary(), episodes, DICTIONARY, 1)
    library = SkillLibrary((Version(step=1, failures=(), added=first),))
    assert names(library, *episodes, most=1) == [(GENERAL, "CC")]


def test_the_order_of_the_episodes_changes_nothing() -> None:
    assert phrase_skills(SkillLibrary(), EPISODES[::-1], DICTIONARY, 9) == phrase_skills(
        SkillLibrary(), EPISODES, DICTIONARY, 9
    )


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        (("Explore", "Take"), "explore, then take"),
        (("OP_Sub-large-near_target",), "op sub large near target"),
        (("Read_Recipe", "Eat_Meal"), "read recipe, then eat meal"),
    ],
)
def test_labels_in_words(phrase: tuple[str, ...], words: str) -> None:
    assert in_words(phrase) == words
