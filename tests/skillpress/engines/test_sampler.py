"""Drawing tokens: the right distribution, from each row's own seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skillpress.engines.sampler import draw, uniforms
from skillpress.interface import Sampling


def test_uniforms_are_uniform_and_differ_by_seed_and_position() -> None:
    seeds = np.arange(20_000, dtype=np.uint64)
    first, second = uniforms(seeds, 0), uniforms(seeds, 1)
    assert first.min() >= 0 and first.max() < 1
    assert abs(first.mean() - 0.5) < 0.01 and abs(np.corrcoef(first, second)[0, 1]) < 0.03
    counts = np.histogram(first, bins=20, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-square, 19 degrees of freedom, p < 0.001


def test_uniforms_match_an_independent_splitmix64() -> None:
    def splitmix(seed: int, position: int) -> float:
        mask = 2**64 - 1
        z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / 2**53

    seeds = np.array([0, 1, 2**62 + 12345], dtype=np.uint64)
    assert uniforms(seeds, 7).tolist() == [splitmix(int(seed), 7) for seed in seeds]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_frequencies_and_logprobs_are_those_of_the_tempered_softmax(temperature: float) -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0]).expand(40_000, 4)
    uniform = torch.from_numpy(uniforms(np.arange(40_000, dtype=np.uint64), 0))
    tokens, logprobs = draw(logits, Sampling(temperature), uniform)
    expected = torch.softmax(logits[0] / temperature, dim=0)
    frequencies = torch.bincount(tokens, minlength=4) / 40_000
    assert float((frequencies - expected).abs().max()) < 0.01
    torch.testing.assert_close(logprobs, expected.log()[tokens])


def test_top_k_and_top_p_keep_the_right_tokens_and_renormalise() -> None:
    probabilities = torch.tensor([0.1, 0.5, 0.15, 0.25])
    logits = probabilities.log().expand(5_000, 4)
    uniform = torch.from_numpy(uniforms(np.arange(5_000, dtype=np.uint64), 0))
    tokens, logprobs = draw(logits, Sampling(top_k=2), uniform)
    assert set(tokens.tolist()) == {1, 3}
    torch.testing.assert_close(logprobs[tokens == 1][0].exp(), torch.tensor(0.5 / 0.75))
    tokens, _ = draw(logits, Sampling(top_p=0.8), uniform)  # 0.5 + 0.25 < 0.8: the third is kept too
    assert set(tokens.tolist()) == {1, 2, 3}


def test_temperature_zero_takes_the_most_probable_token_with_certainty() -> None:
    tokens, logprobs = draw(torch.tensor([[0.0, 3.0, 1.0]]), Sampling(0.0), torch.tensor([0.99]))
    assert tokens.tolist() == [1] and logprobs.tolist() == [0.0]
