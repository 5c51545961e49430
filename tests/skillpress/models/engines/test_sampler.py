"""Drawing tokens: the right distribution, from each row's own seed."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
import torch
from scipy.stats import chi2, kstest

from skillpress.core.engine import Sampling
from skillpress.models.engines import gumbel_max
from skillpress.models.engines.gumbel_max import gumbel
from skillpress.models.engines.sampler import draw

SEEDS = np.arange(40_000, dtype=np.uint64)
"""One seed per row."""


def splitmix(seed: int, position: int) -> int:
    """SplitMix64, written with Python's integers."""
    mask = 2**64 - 1
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_noise_is_gumbel_and_differs_by_stream_and_token() -> None:
    noise = gumbel(torch.from_numpy(SEEDS.view(np.int64)), 3).numpy()
    for values in (*noise.T, noise[0:3000].ravel()):
        assert kstest(values, lambda x: np.exp(-np.exp(-x))).pvalue > 1e-3
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.02
    assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 0.02


def test_noise_is_that_of_an_independent_splitmix64() -> None:
    streams = [0, 1, 2**62 + 12345, 2**64 - 1]
    found = gumbel(torch.from_numpy(np.array(streams, np.uint64).view(np.int64)), 4)
    for stream, row in zip(streams, found.tolist(), strict=True):
        for token, value in enumerate(row):
            uniform = (2 * (splitmix(stream, token) >> 12) + 1) / 2**53
            assert value == pytest.approx(-log(-log(uniform)), rel=1e-14)


def test_a_token_is_the_largest_sum_by_hand() -> None:
    """The stream of a row is SplitMix64 of its seed at the position of the token."""
    logits, seeds = [0.3, -1.0, 0.9, 0.0], [5, 2**63 + 1, 77]
    tokens, _ = draw(torch.tensor([logits] * 3), Sampling(), np.array(seeds, np.uint64), 6)
    for seed, token in zip(seeds, tokens.tolist(), strict=True):
        uniforms = [(2 * (splitmix(splitmix(seed, 6), v) >> 12) + 1) / 2**53 for v in range(4)]
        race = [-log(uniform) / exp(logit) for uniform, logit in zip(uniforms, logits, strict=True)]
        assert race[token] == min(race), "the first of exponential clocks, which is the same"


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_frequencies_and_logprobs_are_those_of_the_tempered_softmax(temperature: float) -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, -5.0, -torch.inf]).expand(len(SEEDS), 6)
    tokens, logprobs = draw(logits, Sampling(temperature), SEEDS, 0)
    expected = torch.softmax(logits[0] / temperature, dim=0)
    counts, wanted = torch.bincount(tokens, minlength=6), expected * len(SEEDS)
    assert counts[5] == 0
    statistic = ((counts - wanted) ** 2 / wanted)[:5].sum()
    assert float(statistic) < chi2.isf(1e-3, 4)
    torch.testing.assert_close(logprobs, expected.log()[tokens])


def test_a_large_vocabulary_of_rare_tokens_is_drawn_from_as_a_whole() -> None:
    """Ten thousand tokens share a thousandth of the mass: 40 of 40,000 draws are expected, within five
    standard deviations."""
    logits = torch.tensor([0.0] + [np.log(1e-3 / 10_000)] * 10_000)
    some = [
        draw(logits.expand(500, -1), Sampling(), SEEDS[at : at + 500], 3)[0] for at in range(0, 40_000, 500)
    ]
    assert abs(int((torch.cat(some) > 0).sum()) - 40) <= 5 * 40**0.5


def test_a_row_is_drawn_alike_beside_any_others_and_with_a_padded_vocabulary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 50))).float()
    together, logprobs = draw(logits, Sampling(), SEEDS[:64], 2)
    order = torch.arange(63, -1, -1)
    torch.testing.assert_close(
        draw(logits[order], Sampling(), SEEDS[:64][::-1].copy(), 2)[0], together[order]
    )
    for row in (0, 40):
        alone, own = draw(logits[row : row + 1], Sampling(), SEEDS[row : row + 1], 2)
        assert (alone.item(), own.item()) == (together[row].item(), logprobs[row].item())
    padded = torch.nn.functional.pad(logits, (0, 14), value=-torch.inf)
    torch.testing.assert_close(draw(padded, Sampling(), SEEDS[:64], 2)[0], together)
    monkeypatch.setitem(gumbel_max.NOISE_VALUES, "cpu", 120)
    torch.testing.assert_close(draw(logits, Sampling(), SEEDS[:64], 2)[0], together)


def test_rounding_of_the_logits_turns_few_draws() -> None:
    """A difference of d nats changes a draw with a probability of about 0.6 d, here one of 10,000. For a
    sampler that looks up a number among boundaries, each of which moves, it is about 20 of them
    (``benchmarks/draws.py``)."""
    logits = torch.from_numpy(np.random.default_rng(1).normal(size=(10_000, 1000))).float()
    rounding = torch.from_numpy(np.random.default_rng(2).normal(scale=2e-4, size=(10_000, 1000))).float()
    seeds = SEEDS[:10_000]
    turned = draw(logits, Sampling(), seeds, 0)[0] != draw(logits + rounding, Sampling(), seeds, 0)[0]
    assert int(turned.sum()) <= 6


def test_top_k_and_top_p_keep_the_right_tokens_and_renormalise() -> None:
    probabilities = torch.tensor([0.1, 0.5, 0.15, 0.25])
    logits = probabilities.log().expand(5_000, 4)
    tokens, logprobs = draw(logits, Sampling(top_k=2), SEEDS[:5_000], 0)
    assert set(tokens.tolist()) == {1, 3}
    torch.testing.assert_close(logprobs[tokens == 1][0].exp(), torch.tensor(0.5 / 0.75))
    tokens, _ = draw(logits, Sampling(top_p=0.8), SEEDS[:5_000], 0)  # 0.5 + 0.25 < 0.8: the third is kept too
    assert set(tokens.tolist()) == {1, 2, 3}


def test_temperature_zero_takes_the_most_probable_token_with_certainty() -> None:
    tokens, logprobs = draw(torch.tensor([[0.0, 3.0, 1.0]]), Sampling(0.0), SEEDS[:1], 0)
    assert tokens.tolist() == [1] and logprobs.tolist() == [0.0]
