"""A success pays λ · c(s) / T; a failure pays nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import SHAPINGS, lookup
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.shaping import Played, Shaping

ALPHABET = ("A", "B", "C")
SINGLETONS = tuple((skill,) for skill in ALPHABET)
PHRASES = (*SINGLETONS, ("A", "B"))
DICTIONARY = SkillDictionary(ALPHABET, 2, PHRASES, (0, 0, 0, 1), 1, "greedy", 0)
SINGLETON_DICTIONARY = SkillDictionary(ALPHABET, 2, SINGLETONS, (0, 0, 0), 1, "greedy", 0)

batches = st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(ALPHABET), max_size=30).map(tuple)))


def make_shaping(name: str, weight: float, max_steps: int) -> Shaping:
    return lookup(SHAPINGS, name, "reward.shaping")(weight, max_steps)


def played(won, sequences, steps=None):
    """A batch; if every step has a skill, a trajectory has as many steps as skills."""
    return Played(won, sequences, steps or [len(sequence) for sequence in sequences])


def test_segcost_charges_segments_of_successes_only():
    """λ = 10, T = 30: ABAB is two phrases, so 10 * 2 / 30; the failure costs nothing."""
    penalties = make_shaping("segcost", 10.0, 30)(played([True, False], [("A", "B") * 2, ("C",)]), DICTIONARY)
    assert penalties == pytest.approx([20 / 30, 0.0])


def test_round_length_charges_every_skill():
    penalties = make_shaping("round_length", 10.0, 30)(played([True, False], [("A", "B") * 2, ("C",)]), None)
    assert penalties == pytest.approx([40 / 30, 0.0])


def test_rounds_charges_every_step_whether_or_not_it_has_a_skill():
    batch = played([True, False], [("A", "B"), ("C",)], steps=[6, 9])
    assert make_shaping("rounds", 10.0, 30)(batch, None) == pytest.approx([60 / 30, 0.0])


@given(batches)
def test_rounds_is_round_length_where_every_step_has_a_skill(batch):
    everything = played([w for w, _ in batch], [s for _, s in batch])
    by_rounds, by_length = (make_shaping(n, 10.0, 30)(everything, None) for n in ("rounds", "round_length"))
    assert by_rounds.tolist() == by_length.tolist()


@given(batches)
def test_a_constant_is_the_same_for_every_success(batch):
    """λ / 10, with or without skills."""
    penalties = make_shaping("constant", 10.0, 30)(played([w for w, _ in batch], [s for _, s in batch]), None)
    assert penalties.tolist() == [float(won) for won, _ in batch]


several = st.lists(st.sampled_from(ALPHABET), max_size=4).map(tuple)
"""The skills of a step whose response makes up to four calls."""


@given(st.lists(several, min_size=1, max_size=30), st.sampled_from(sorted(SHAPINGS)))
def test_what_the_steps_of_a_success_pay_sums_to_its_penalty(steps, name):
    """No step pays less than nothing, wherever the phrases begin and end within steps."""
    shaping = make_shaping(name, 10.0, 30)
    sequence = tuple(skill for skills in steps for skill in skills)
    charges = shaping.of_steps(steps, DICTIONARY)
    assert charges.shape == (len(steps),) and (charges >= 0).all()
    assert charges.sum() == pytest.approx(shaping(played([True], [sequence], [len(steps)]), DICTIONARY)[0])


@given(st.lists(several, min_size=1, max_size=12))
def test_segcost_charges_a_step_for_the_phrases_that_begin_in_it(steps):
    """The same sequence as single steps pays the same, step by step, summed over the calls of each step."""
    shaping = make_shaping("segcost", 30.0, 30)
    sequence = [(skill,) for skills in steps for skill in skills]
    alone = iter(shaping.of_steps(sequence, DICTIONARY).tolist())
    charges = shaping.of_steps(steps, DICTIONARY).tolist()
    assert charges == [sum(next(alone) for _ in skills) for skills in steps]


def test_segcost_charges_the_first_step_of_each_phrase():
    """A B is a phrase: A _ B | C | A | _ A B; the steps without a skill pay nothing."""
    steps = (("A",), (), ("B",), ("C",), ("A",), (), ("A",), ("B",))
    charges = make_shaping("segcost", 30.0, 30).of_steps(steps, DICTIONARY)
    assert charges.tolist() == [1, 0, 0, 1, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="dictionary is None"):
        make_shaping("segcost", 30.0, 30).of_steps(steps, None)


def test_a_phrase_may_begin_and_end_within_a_step():
    """A B | A B | C: the second step holds the end of the first phrase and the beginning of the second."""
    charges = make_shaping("segcost", 30.0, 30).of_steps((("A",), ("B", "A"), ("B", "C")), DICTIONARY)
    assert charges.tolist() == [1, 1, 1]
    assert make_shaping("segcost", 30.0, 30).of_steps((("C", "A", "B"), ()), DICTIONARY).tolist() == [2, 0]


def test_no_shaping_charges_nothing():
    assert make_shaping("none", 10.0, 30)(
        played([True, False], [("A", "B"), ("C",)]), DICTIONARY
    ).tolist() == [0, 0]


@given(batches)
def test_proposition_1_round_length_is_segcost_under_singletons(batch):
    won, sequences = [w for w, _ in batch], [s for _, s in batch]
    by_length = make_shaping("round_length", 10.0, 30)(played(won, sequences), None)
    by_segments = make_shaping("segcost", 10.0, 30)(played(won, sequences), SINGLETON_DICTIONARY)
    assert by_length.tolist() == by_segments.tolist()


@given(batches, st.sampled_from(sorted(set(SHAPINGS) - {"bits"})))
def test_penalties_lie_between_0_and_lambda(batch, name):
    """A rare skill may have more bits than one of the alphabet, so those of ``bits`` have no such bound."""
    penalties = make_shaping(name, 10.0, 30)(played([w for w, _ in batch], [s for _, s in batch]), DICTIONARY)
    assert penalties.shape == (len(batch),)
    assert ((penalties >= 0) & (penalties <= 10)).all()


@pytest.mark.parametrize("name", ["segcost", "bits"])
def test_without_a_success_there_is_no_dictionary_and_no_penalty(name):
    shaping = make_shaping(name, 10.0, 30)
    assert shaping(played([False, False], [("A",), ()]), None).tolist() == [0, 0]
    with pytest.raises(ValueError, match="dictionary is None"):
        shaping(played([True], [("A",)]), None)


@pytest.mark.parametrize("name", sorted(set(SHAPINGS) - {"constant"}))
@pytest.mark.parametrize("dictionary", [None, DICTIONARY])
def test_a_success_without_skills_pays_nothing(name, dictionary):
    """seg(()) = |()| = 0, whether or not another success gave the batch a dictionary."""
    assert make_shaping(name, 10.0, 30)(played([True, False], [(), ("A",)]), dictionary).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["rounds", "round_length", "segcost", "bits"])
def test_an_episode_of_too_many_steps_is_refused(name):
    with pytest.raises(ValueError, match="4 steps is longer than the 3 steps"):
        make_shaping(name, 1.0, 3)(played([True], [("A",)], steps=[4]), DICTIONARY)


@pytest.mark.parametrize("name", ["round_length", "segcost"])
def test_more_skills_than_steps_cost_more_than_lambda(name):
    """Two calls in each of 3 steps; C is a phrase by itself."""
    penalty = make_shaping(name, 1.0, 3)(played([True], [("C",) * 6], steps=[3]), DICTIONARY)
    assert penalty.tolist() == [2.0]


def test_flags_sequences_and_steps_must_match():
    for won, sequences, steps in (([True, False], [("A",)], [1]), ([True], [("A",)], [1, 2])):
        with pytest.raises(ValueError, match="success flags"):
            Played(won, sequences, steps)
