"""From trajectories to padded microbatches and back to log-probabilities."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.samples import Samples, microbatches, pack
from skillpress.trajectory import Step

tokens = st.lists(st.integers(1, 99), min_size=1, max_size=6).map(tuple)


def make_samples(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Samples:
    steps = tuple(
        Step(prompt, response, tuple(-float(t) for t in response), "", "", "", None, 0.0)
        for prompt, response in rows
    )
    return Samples(steps, np.arange(1.0, len(rows) + 1), np.full(len(rows), 0.5))


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=8))
def test_every_response_token_is_predicted_from_exactly_what_preceded_it(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    batch = pack(make_samples(rows), "cpu")
    width = batch.input_ids.shape[1]
    expected = [
        ((prompt + response)[: len(prompt) + i], response[i], float(number))
        for number, (prompt, response) in enumerate(rows, 1)
        for i in range(len(response))
    ]
    found = []
    for position, target, advantage in zip(
        batch.predicting.tolist(), batch.targets.tolist(), batch.advantages.tolist(), strict=True
    ):
        row, column = divmod(position, width)
        found.append((tuple(batch.input_ids[row, : column + 1].tolist()), target, advantage))
    assert found == expected
    torch.testing.assert_close(batch.old_logprobs, -batch.targets.float())


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=12), st.integers(12, 40))
def test_microbatches_hold_every_sample_once_within_the_token_limit(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]], limit: int
) -> None:
    batches = list(microbatches(make_samples(rows), limit, "cpu"))
    advantages = np.concatenate([np.unique(batch.advantages.numpy()) for batch in batches])
    assert sorted(advantages.tolist()) == [float(n) for n in range(1, len(rows) + 1)]
    assert all(batch.input_ids.numel() <= limit for batch in batches)
