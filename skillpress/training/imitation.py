"""The warm start: supervised learning on an oracle's demonstrations.

Each demonstrated step is one sample: the prompt the policy would have seen, the response that the
demonstrator's action stands for. A policy made from scratch knows nothing of its world; without
these minutes no rollout would ever succeed and reinforcement learning would have nothing to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.agents import Prompter
from skillpress.interface import TokenIds
from skillpress.params import ImitationParameters
from skillpress.policy.policy import Policy
from skillpress.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollout.demonstrations import DemonstratedStep
from skillpress.seeds import generator


def tokenize(
    steps: Sequence[DemonstratedStep], prompter: Prompter, policy: Policy
) -> list[tuple[TokenIds, TokenIds]]:
    """(prompt, response) tokens of demonstrated steps; those without a prompt that fits are left out."""
    prompts = prompter([step.state for step in steps])
    known = {response: policy.encode_response(response) for response in {s.response for s in steps}}
    return [
        (prompt, known[step.response])
        for prompt, step in zip(prompts, steps, strict=True)
        if prompt is not None
    ]


def imitate(
    policy: Policy,
    demonstrations: Sequence[tuple[TokenIds, TokenIds]],
    parameters: ImitationParameters,
    seed: int,
    on_update: Callable[[int, int, dict[str, float]], None] = lambda done, total, metrics: None,
) -> dict[str, float]:
    """Train the policy in place on the mean negative log-likelihood of the responses' tokens.

    Args:
        on_update: called with (updates done, updates in all, metrics of the last one).

    Returns:
        ``loss`` (nats per token), the mean over the last tenth of the updates, and ``updates``.
    """
    scorer = ResponseScorer(policy.model.train())
    optimizer = torch.optim.AdamW(
        scorer.parameters(), lr=parameters.learning_rate, weight_decay=0.01, fused=True
    )
    total = parameters.epochs * -(-len(demonstrations) // parameters.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min(1.0, (done + 1) / 50) * (1 - done / total)
    )
    recent: list[float] = []
    for done, rows in enumerate(_batches(len(demonstrations), parameters, seed), 1):
        logprobs, _ = scorer(pack_responses([demonstrations[row] for row in rows], policy.model.device), 1.0)
        loss = -logprobs.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(scorer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent = [*recent[-(total // 10) :], float(loss.detach())]
        on_update(done, total, {"loss": recent[-1]})
    policy.model.eval()
    return {"loss": float(np.mean(recent)), "updates": float(total)}


def _batches(count: int, parameters: ImitationParameters, seed: int) -> Iterator[NDArray[np.int64]]:
    for epoch in range(parameters.epochs):
        order = generator(seed, "imitation", epoch).permutation(count)
        for first in range(0, count, parameters.batch_size):
            yield order[first : first + parameters.batch_size]
