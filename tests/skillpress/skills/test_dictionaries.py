"""One dictionary for all tasks, or one for each class of tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Task
from skillpress.skills.buffer import Success
from skillpress.skills.dictionaries import (
    SHARED,
    by_dictionary,
    description_length,
    fit_each,
    per_class,
    shared,
)
from skillpress.skills.fit import fit
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.step_corpus import StepCorpus

SECTION = SkillParameters(
    max_phrase_length=3, buffer=0, corpus="algorithm_1", search="greedy", closure="none", library=None
)
sequences = st.lists(st.sampled_from("ABC"), min_size=1, max_size=6).map(tuple)
corpora = st.lists(
    st.builds(Success, sequences, st.just("t"), st.sampled_from("xyz")), min_size=1, max_size=30
)


def task(stratum: str) -> Task:
    return Task("t", "countdown", 0, {}, stratum=stratum)


def test_the_class_of_a_task_is_the_last_part_of_its_stratum() -> None:
    assert [per_class(task(name)) for name in ("train/heat", "ood/heat", "simple", "")] == [
        "heat",
        "heat",
        "simple",
        "",
    ]
    assert shared(task("train/heat")) == SHARED


@given(corpora, corpora)
def test_every_dictionary_is_the_one_fitted_to_its_own_successes_alone(judged, ranked_with) -> None:
    found = fit_each(SECTION, StepCorpus(judged, ranked_with), "ABC", 0)
    assert list(found) == sorted({each.dictionary for each in judged})
    for name, dictionary in found.items():
        own, more = ([s.skills for s in those if s.dictionary == name] for those in (judged, ranked_with))
        assert dictionary == fit(own, "ABC", 3, ranked_with=more)


@given(corpora)
def test_their_description_length_is_that_of_all_successes_weighed_alike(judged) -> None:
    found = fit_each(SECTION, StepCorpus(judged), "ABC", 0)
    each = sum(one.description_length * one.sequences for one in found.values())
    assert description_length(found) == pytest.approx(each / len(judged))


def test_a_single_dictionary_keeps_its_bits() -> None:
    (only,) = fit_each(SECTION, StepCorpus([Success((*"ABC",), "t")] * 7), "ABC", 0).values()
    assert description_length({SHARED: only}) == only.description_length


def test_sequences_keep_their_order_within_a_dictionary() -> None:
    judged = [Success((skill,), "t", name) for skill, name in ("Ax", "By", "Cx")]
    assert by_dictionary(judged) == {"x": [("A",), ("C",)], "y": [("B",)]}
