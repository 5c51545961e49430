"""A history keeps every step's phrases; the lifetimes of phrases follow from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import StorageError
from skillpress.evaluation.analysis.drift import drift, lifetimes, spans
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.history import PhraseHistory, read_history, write_history

AB, BC, CD = ("A", "B"), ("B", "C"), ("C", "D")
HISTORY = {3: {AB: 1, BC: 4}, 1: {AB: 5}, 2: {AB: 2, CD: 3}}
phrases = st.lists(st.sampled_from("ABC"), min_size=2, max_size=4).map(tuple)
histories = st.dictionaries(
    st.integers(1, 12), st.dictionaries(phrases, st.integers(0, 9), max_size=5), max_size=12
)


def test_lifetimes_count_the_steps_of_a_phrase():
    assert lifetimes(HISTORY).rows() == [("A → B", 1, 3, 3, 8), ("B → C", 3, 3, 1, 4), ("C → D", 2, 2, 1, 3)]


def test_a_phrase_that_comes_back_has_two_stretches_and_one_lifetime():
    history = {1: {AB: 1}, 2: {AB: 1}, 3: {}, 4: {AB: 2}}
    assert spans(history).rows() == [("A → B", 1, 2, 2), ("A → B", 4, 4, 2)]
    assert lifetimes(history).rows() == [("A → B", 1, 4, 3, 4)]


def test_a_step_without_a_success_ends_all_stretches_and_has_no_neighbours():
    history = {1: {AB: 1}, 3: {AB: 1}}
    assert spans(history).height == 2
    assert drift(history)["previous"].to_list() == [None, None]


@given(histories)
def test_a_phrase_lives_in_as_many_steps_as_have_it(history):
    found = {row["phrase"]: row["steps"] for row in lifetimes(history).iter_rows(named=True)}
    counted: dict[str, int] = {}
    for step in history.values():
        for phrase in step:
            counted[" → ".join(phrase)] = counted.get(" → ".join(phrase), 0) + 1
    assert found == counted


def test_drift_compares_with_the_step_before_and_with_the_base():
    """Jaccard by hand: {AB} and {AB, CD}; then {AB, CD} and {AB, BC}; the base knows AB alone."""
    changes = drift(HISTORY, base={AB: 7}).rows()
    assert changes[0] == (1, 1, None, None, None, 1.0, 1.0)
    assert changes[1] == (2, 2, 1, 0, 0.5, 0.5, pytest.approx((2 / 5) / (1 + 3 / 5)))
    assert changes[2] == (3, 2, 1, 1, pytest.approx(1 / 3), 0.5, pytest.approx((1 / 5) / (1 + 4 / 5)))
    assert drift(HISTORY)["base_uses"].to_list() == [None] * 3


def test_without_steps_there_is_nothing_to_follow():
    assert lifetimes({}).height == drift({}).height == spans({}).height == 0


@given(histories)
def test_written_and_read_it_is_the_same(tmp_path_factory, history):
    path = tmp_path_factory.mktemp("history") / "dictionaries.json"
    write_history(path, history)
    assert read_history(path) == history


def test_the_order_in_which_steps_were_added_leaves_no_trace(tmp_path):
    for name, steps in (("one", sorted(HISTORY)), ("other", list(HISTORY))):
        write_history(tmp_path / name, {step: HISTORY[step] for step in steps})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "skillpress.history/0"}, "this version reads"),
        ({"phrases": []}, "damaged"),
        ({"steps": [[1]]}, "damaged"),
        ({"steps": None}, "damaged"),
    ],
)
def test_a_file_of_another_schema_or_a_damaged_one_is_refused(tmp_path, change, message):
    path = tmp_path / "dictionaries.json"
    write_history(path, HISTORY)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StorageError, match=message):
        read_history(path)


def test_the_phrases_of_several_dictionaries_of_a_step_are_stored_together():
    def dictionary(phrases: tuple[tuple[str, ...], ...], *uses: int) -> SkillDictionary:
        return SkillDictionary(
            ("A", "B", "C"), 2, (("A",), ("B",), ("C",), *phrases), (0, 0, 0, *uses), 9, "", 0
        )

    history = PhraseHistory()
    history.record(4, [dictionary((AB, BC), 3, 0), dictionary((AB,), 2)])
    assert history.steps == {4: {AB: 5, BC: 0}}
