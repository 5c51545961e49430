"""Laws of every search: those of a dictionary, and defined behaviour at the edges."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.registry import CLOSURES, SEARCHES
from skillpress.evaluation.analysis.mdl_report import coverage, parts, phrase_table, savings
from skillpress.skills.bounds import bounds
from skillpress.skills.exploitable import exploitable_rate
from skillpress.skills.fit import fit
from tests.support.skills.corpora import repetitive

ALPHABET = ("x", "y", "z")
REPOSITORY = Path(__file__).parents[4]
searches = pytest.mark.parametrize("search", SEARCHES)
closures = pytest.mark.parametrize("closure", CLOSURES)


def named(corpus):
    return [tuple(ALPHABET[skill] for skill in sequence) for sequence in corpus]


@searches
@settings(max_examples=10)
@given(data=st.data())
def test_the_order_of_the_corpus_is_irrelevant(search, data):
    corpus = named(data.draw(repetitive(3, parts=3)))
    shuffled = data.draw(st.permutations(corpus))
    one, other = (fit(each, ALPHABET, 3, search, seed=4) for each in (shuffled, corpus))
    # A proven bound comes from a solver, which adds up in the order of the corpus.
    if one.lower_bound is not None:
        assert other.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)
        other = replace(other, lower_bound=one.lower_bound)
    if search == "exact":  # of two dictionaries with the same bits, the solver may find either
        other = replace(other, phrases=one.phrases, counts=one.counts)
    assert other == one


def test_processes_running_side_by_side_find_the_same():
    """Processes with different orders of their sets and dicts of strings."""
    program = (
        "from skillpress.core.registry import SEARCHES; from skillpress.skills.fit import fit;"
        "corpus = [('x', 'y', 'z', 'x')] * 30 + [('z', 'x', 'x')] * 20 + [('y', 'y')] * 9;"
        "print([fit(corpus, ('x', 'y', 'z'), 4, search, 5, 'prefixes') for search in SEARCHES])"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    first, second = (run.communicate()[0] for run in runs)
    assert first == second and first.count("SkillDictionary(") == len(SEARCHES)


@searches
@closures
@pytest.mark.parametrize(
    ("alphabet", "longest", "corpus"),
    [
        (("x",), 4, [("x",) * 12] * 20),  # K = 1: naming a skill takes no bits at all
        (ALPHABET, 1, [("x", "y", "z")] * 40),  # L = 1: nothing to learn
        (("x",), 1, [("x",)]),
        (ALPHABET, 16, [("x", "y", "z") * 2] * 30),  # L above every sequence
        (ALPHABET, 4, [()]),
        (ALPHABET, 4, [(), ("x", "y"), ()] * 20),
    ],
    ids=["one skill", "length one", "both", "long phrases", "an empty sequence", "some empty sequences"],
)
def test_at_the_edges_a_dictionary_and_its_report_are_defined(search, closure, alphabet, longest, corpus):
    dictionary = fit(corpus, alphabet, longest, search, closure=closure)
    assert dictionary.sequences == len(corpus)
    assert sum(len(p) * n for p, n in zip(dictionary.phrases, dictionary.counts, strict=True)) == sum(
        map(len, corpus)
    )
    if len(alphabet) == 1 or longest == 1:
        assert dictionary.learned == () or search in ("random", "frequency")
    found = savings(dictionary, corpus)
    before, after = parts(dictionary).rows()
    assert found.singletons == pytest.approx(sum(before[1:]))
    assert found.dictionary == pytest.approx(sum(after[1:]))
    assert len(phrase_table(dictionary, corpus)) == len(dictionary.phrases)
    assert 0 <= sum(coverage(dictionary)["skill_share"]) <= 1 + 1e-12
    assert 0 <= exploitable_rate(corpus, dictionary) <= 1
    assert {bound.name: bound.loss for bound in bounds(dictionary, corpus, 30)}["empirical"] <= 1


@searches
def test_an_empty_corpus_and_an_unknown_skill_are_refused(search):
    with pytest.raises(ValueError, match="corpus is empty: without a success"):
        fit([], ALPHABET, 4, search)
    with pytest.raises(ValueError, match="'w' is not in the alphabet: x, y, z"):
        fit([("x", "w")], ALPHABET, 4, search)


def test_a_skill_outside_the_alphabet_is_refused_by_everything_that_cuts():
    dictionary = fit([("x", "y")] * 9, ALPHABET, 4)
    for cut in (dictionary.segment, dictionary.cost, lambda s: dictionary.costs([s])):
        with pytest.raises(ValueError, match="'w'"):
            cut(("x", "w"))
    with pytest.raises(ValueError, match="'w'"):
        exploitable_rate([("w",)], dictionary)
    with pytest.raises(ValueError, match="'w' is not in the alphabet"):
        phrase_table(dictionary, [("w",)])
