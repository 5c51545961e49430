"""The bounds compute Theorem 3 and Proposition 4, and the tighter ones are tighter."""

from __future__ import annotations

from itertools import combinations, product
from math import exp, log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.bounds import (
    bounds,
    certifiable,
    certify,
    half_sample,
    kl_inverse,
    log_normaliser,
    losses,
)
from skillpress.skills.fit import fit
from tests.support.skills.corpora import markov_chains, repetitive

ALPHABET = ("x", "y", "z")


def named(corpus):
    return [tuple(ALPHABET[skill] for skill in sequence) for sequence in corpus]


@pytest.mark.parametrize(("alphabet_size", "max_phrase_length"), [(1, 1), (1, 4), (2, 1), (2, 3), (3, 2)])
def test_the_normaliser_is_the_sum_over_every_dictionary(alphabet_size, max_phrase_length):
    optional = [
        length
        for length in range(2, max_phrase_length + 1)
        for _ in product(range(alphabet_size), repeat=length)
    ]
    total = sum(
        2 ** -sum(n * log2(alphabet_size) + log2(max_phrase_length) for n in [*[1] * alphabet_size, *learned])
        for size in range(len(optional) + 1)
        for learned in combinations(optional, size)
    )
    assert exp(log_normaliser(alphabet_size, max_phrase_length)) == pytest.approx(total)


@given(st.integers(1, 4096), st.integers(1, 16))
def test_the_normaliser_is_at_most_one(alphabet_size, max_phrase_length):
    assert log_normaliser(alphabet_size, max_phrase_length) <= 0


@given(repetitive(3), st.sampled_from(["greedy", "refined", "singletons", "random"]))
def test_losses_lie_between_0_and_1(corpus, search):
    dictionary = fit(named(corpus), ALPHABET, 4, search)
    assert all(0 <= loss <= 1 for loss in losses(dictionary, named(corpus), 30))


def test_equation_7_by_hand():
    """64 copies of xyz and nothing learned: K = 3, L = 2, T = 10, L_dict = 3 log2 3 + 3 bits."""
    sample = [("x", "y", "z")] * 64
    stored = 3 * log2(3) + 3
    scale = stored / 64 + 10 * log2(3)
    mean = (stored / 64 + 3 * log2(3)) / scale
    root = sqrt((stored * log(2) + log(64 / 0.05)) / 128)
    found = {b.name: b for b in bounds(fit(sample, ALPHABET, 2, "singletons"), sample, 10)}
    assert found["empirical"].loss == pytest.approx(mean)
    assert found["theorem_3"].loss == pytest.approx(mean + root)
    assert found["theorem_3"].bits == pytest.approx((mean + root) * scale)
    reach = stored / 64 + 3 * log2(3)
    assert found["proposition_4"].bits == pytest.approx(mean * scale + reach * root)


@given(st.floats(0, 1), st.floats(0, 5))
def test_the_kl_inverse_is_above_the_mean_and_within_pinskers_bound(mean, complexity):
    assert mean <= kl_inverse(mean, complexity) <= mean + sqrt(complexity / 2) + 1e-7


def test_without_a_mistake_the_kl_inverse_has_a_closed_form():
    assert kl_inverse(0.0, 0.3) == pytest.approx(1 - exp(-0.3))


@given(repetitive(3))
def test_each_refinement_is_at_least_as_tight(corpus):
    sample = named(corpus) * 8
    found = {b.name: b.loss for b in bounds(fit(sample, ALPHABET, 4), sample, 30)}
    assert found["empirical"] <= found["union"] <= found["kl_inverse"] + 1e-9
    assert found["kl_inverse"] <= found["theorem_3_exact_z"] + 1e-9
    assert found["theorem_3_exact_z"] <= found["theorem_3"]


def test_in_bits_equation_7_prefers_singletons_where_the_half_sample_prefers_what_was_learned():
    """Theorem 3 pays for every bit of the dictionary; 256 sequences cannot afford that."""
    chains = markov_chains(5, 256)
    sample = [tuple("abcde"[skill] for skill in s) for s in chains]
    found = certify(fit(sample, "abcde", 4), sample, 50)
    learned, singletons = ({b.name: b.bits for b in each} for each in (found.learned, found.singletons))
    assert singletons["theorem_3"] < learned["theorem_3"]
    assert learned["half_sample"] < singletons["half_sample"]


def test_the_half_sample_bound_learns_from_the_first_half_alone():
    """The second half holds nothing that the first could teach, so no phrase shortens it: 2 of T = 4."""
    sample = [("x", "y")] * 40 + [("z", "z")] * 40
    found = {b.name: b for b in certify(fit(sample, ALPHABET, 2), sample, 4).learned}["half_sample"]
    stored = (3 + 2) * log2(3) + 4
    limit = kl_inverse(2 / 4, log(1 / 0.05) / 40)
    assert found.bits == pytest.approx(stored / 80 + limit * 4 * log2(4))


def test_the_half_sample_bound_fails_no_more_often_than_it_may():
    """200 fresh samples of 40 sequences compared with the true mean of a known distribution; δ = 0.2.

    One or two x follow with equal chance, so that singletons need 1.5 segments on average.
    """
    rng = np.random.default_rng(0)
    dictionary = fit([("x",)], ALPHABET, 1, "singletons")
    truth = 1.5 * log2(3)
    failures = 0
    for _ in range(200):
        sample = [("x",) * int(length) for length in rng.integers(1, 3, 40)]
        share = dictionary.dictionary_bits / 40
        failures += half_sample(dictionary, sample, 2, 40, delta=0.2).bits - share < truth
    assert failures / 200 <= 0.2


def test_a_sample_is_certifiable_where_t_bounds_its_sequences():
    """A step may hold several skills, so a sequence may be longer than T."""
    assert certifiable([("x",), ("x",) * 2], 2)
    assert not certifiable([("x",), ("x",) * 3], 2)
    assert not certifiable([("x",)], 2)
    assert not certifiable([], 2)


def test_what_no_episode_can_hold_is_refused():
    dictionary = fit([("x",)], ALPHABET, 4)
    with pytest.raises(ValueError, match="3 skills is longer than the 2 steps"):
        losses(dictionary, [("x",) * 3], 2)
    with pytest.raises(ValueError, match="sample is empty"):
        bounds(dictionary, [], 2)
    with pytest.raises(ValueError, match="at least two"):
        certify(dictionary, [("x",)], 30)
