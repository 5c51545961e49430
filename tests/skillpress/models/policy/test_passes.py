"""No pass holds more tokens than its limit, whichever scorer makes it."""

from __future__ import annotations

import pytest
import torch

from skillpress.core.chains import Pair
from skillpress.models.policy import token_scores
from skillpress.models.policy.agreement import disagreement
from skillpress.models.policy.passes import response_logprobs
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import pack_responses
from tests.support.models.tiny import tiny_policy

PAIRS: list[Pair] = [((3, 4, 5), (6, 7)), ((3, 4, 5), (8,)), ((9,), (4, 5, 6, 7)), ((3,) * 7, (5, 6))]


@pytest.mark.parametrize("limit", [1, 12, 1000])
def test_a_response_is_scored_alike_in_whatever_pass(limit: int) -> None:
    model = tiny_policy().model
    scorer = choose_scorer(model)
    found = response_logprobs(scorer, PAIRS, 0.7, limit, model.device)
    for pair, logprobs in zip(PAIRS, found, strict=True):
        expected, _ = scorer(pack_responses([pair]), 0.7)
        torch.testing.assert_close(logprobs, expected.detach(), rtol=1e-4, atol=1e-5)


def test_a_comparison_with_the_models_own_logits_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its passes are bounded by the limit, its logits by the size of a chunk: here two tokens."""
    model, passed, logits = tiny_policy().model, [], []
    model.base_model.register_forward_hook(
        lambda module, _, named, output: passed.append(named["input_ids"].numel()), with_kwargs=True
    )
    model.register_forward_hook(lambda module, _, output: logits.append(output.logits.shape[1]))
    monkeypatch.setattr(token_scores, "CHUNK_LOGITS", 2 * model.config.vocab_size)
    assert disagreement(model, PAIRS, token_limit=9) < 1e-3
    assert max(passed) <= 9 and max(logits) <= 3
