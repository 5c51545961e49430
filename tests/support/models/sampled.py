"""The policies that the tests of the local engine's two decoders sample from, and the comparison of their
results."""

from __future__ import annotations

import numpy as np

from skillpress.core.engine import Completion
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy import Policy
from tests.support.models.families import family
from tests.support.models.tiny import tiny_policy


def prompts_of(count: int, longest: int = 12, seed: int = 0) -> list[TokenIds]:
    random = np.random.default_rng(seed)
    return [tuple(map(int, random.integers(3, 50, random.integers(1, longest)))) for _ in range(count)]


def policy_of(name: str) -> Policy:
    """A random model of a family with the tiny policy's tokenizer; every fourth token ends a response."""
    model = family(name, use_cache=True)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = list(range(0, 60, 4))
    return Policy(model, tiny_policy().tokenizer)


def assert_alike(found: list[Completion], expected: list[Completion]) -> None:
    assert [c.token_ids for c in found] == [c.token_ids for c in expected]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-4)
