"""What a log uses, holds and saves, compared with the dictionary's own slow methods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.analysis.mdl_report import ARROW, phrase_table
from skillpress.reports.skills_page.certificate import certify
from skillpress.reports.skills_page.over_time import over_time
from skillpress.reports.skills_page.routines import bits_saved, holdings, uses
from skillpress.skills.fit import fit

ALPHABET = tuple("abcd")
CORPORA = st.lists(st.lists(st.sampled_from(ALPHABET), max_size=12).map(tuple), min_size=1, max_size=20)


def learned(corpus, search: str = ""):
    return fit(corpus, ALPHABET, 4, search or "refined")


HABITUAL = [tuple("abcd" * n + "da") for n in (1, 2, 3)] * 20


@given(CORPORA.map(lambda corpus: corpus + HABITUAL))
def test_uses_are_those_of_the_cut(corpus) -> None:
    dictionary = learned(corpus)
    used = uses(dictionary, corpus)
    assert used.phrases == dictionary.learned
    assert used.total.tolist() == list(dictionary.learned_counts.values())
    for number, phrase in enumerate(used.phrases):
        assert used.having(number).tolist() == [phrase in dictionary.segment(skills) for skills in corpus]


@given(CORPORA.map(lambda corpus: corpus + HABITUAL))
def test_a_trace_holds_what_stands_in_it_in_a_row(corpus) -> None:
    held = holdings(learned(corpus), corpus)
    for number, phrase in enumerate(held.phrases):
        counted = [
            sum(skills[start : start + len(phrase)] == phrase for start in range(len(skills)))
            for skills in corpus
        ]
        assert held.having(number).tolist() == [count > 0 for count in counted]
        assert held.total[number] == sum(counted)


@given(CORPORA.map(lambda corpus: corpus + HABITUAL))
def test_bits_saved_are_those_of_the_reports_table(corpus) -> None:
    dictionary = learned(corpus)
    table = phrase_table(dictionary, corpus)
    expected = dict(zip(table["phrase"], table["bits_saved"], strict=True))
    for phrase, saved in zip(dictionary.learned, bits_saved(dictionary, corpus), strict=True):
        assert saved == pytest.approx(expected[ARROW.join(phrase)], abs=1e-6)


def test_a_task_lies_in_one_half_of_the_certificate() -> None:
    halves = []

    def fit_and_remember(sequences, search: str):
        halves.append(set(sequences))
        return learned(sequences, search)

    tasks = [f"t{place % 7}" for place in range(70)]
    corpus = [(ALPHABET[place % 4],) * (1 + place % 7) for place in range(70)]  # its length names the task
    found = certify(corpus, tasks, fit_and_remember, None, 0)
    assert found is not None and sum(found.halves) == 70 and found.longest == 7
    lengths = {len(skills) for skills in halves[0]}
    assert 0 < len(lengths) < 7 and found.halves[0] == 10 * len(lengths)


def test_the_certificate_lies_above_what_was_seen() -> None:
    found = certify(HABITUAL, [""] * len(HABITUAL), learned, None, 0)
    assert found is not None
    assert found.learned.seen < found.learned.bound < found.singles.seen < found.singles.bound


def test_what_lies_beyond_the_longest_trace_is_not_counted() -> None:
    found = certify([*HABITUAL, tuple("abcd" * 500)], [""] * (len(HABITUAL) + 1), learned, 20, 0)
    assert found is not None and found.longest == 20


@pytest.mark.parametrize("corpus", [[], [tuple("ab")], [()] * 9, [tuple("ab")] * 9])
def test_without_two_tasks_or_skills_there_is_no_certificate(corpus) -> None:
    assert certify(corpus, ["one"] * len(corpus), learned, None, 0) is None


def habits(count: int, second: str, seed: int) -> list[tuple[str, ...]]:
    chance = np.random.default_rng(seed)
    return [sum((tuple(chance.choice(["abc", second])) for _ in range(4)), ()) for _ in range(count)]


def test_a_new_habit_shows_over_time() -> None:
    steady = over_time(habits(400, "cda", 0), learned, 0)
    changed = over_time([*habits(200, "cda", 0), *habits(200, "dbb", 1)], learned, 0)
    assert steady is not None and changed is not None
    assert steady.traces == (50,) * 8 and sum(changed.traces) == 400
    assert changed.changes["previous"].min() < steady.changes["previous"].min()
    assert abs(steady.overlap - steady.by_chance) < 0.15


def test_too_few_traces_have_no_windows() -> None:
    assert over_time(habits(99, "cda", 0), learned, 0) is None
