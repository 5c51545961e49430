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

BATCHES_AT_ONCE = 32
"""Updates whose samples are drawn together."""


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
    sizes = np.array([len(prompt) + len(response) for prompt, response in demonstrations])
    for done, rows in enumerate(batches(sizes, parameters, seed), 1):
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


def batches(
    sizes: NDArray[np.int64], parameters: ImitationParameters, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Rows of each update: every row once an epoch, with others of about its size, to pad little.

    The rows of ``BATCHES_AT_ONCE`` batches are drawn, sorted by size and cut; a batch comes when the
    first drawn of its rows would have come. Rows of equal size stay in the order in which they were
    drawn.

    Args:
        sizes: [rows] tokens of each.
    """
    drawn_at_once = BATCHES_AT_ONCE * parameters.batch_size
    for epoch in range(parameters.epochs):
        order = generator(seed, "imitation", epoch).permutation(len(sizes))
        for drawn in (order[first : first + drawn_at_once] for first in range(0, len(order), drawn_at_once)):
            by_size = np.argsort(sizes[drawn], kind="stable")
            cuts = range(parameters.batch_size, len(drawn), parameters.batch_size)
            for batch in sorted(np.split(by_size, cuts), key=min):
                yield drawn[batch]
