"""Prints a learner's figures and the same figures by plain autograd, as JSON.

There are six sampled responses, two of them without advantage. The other four make three minibatches, one of
which is empty. The model is a GPT-2 with dropout. The learning rate is so small that all minibatches see the
same weights.
"""

from __future__ import annotations

import json

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import Step
from skillpress.models.policy.policy import copy_model
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.algorithm import token_weights
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.measured import mean_metrics
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.training.batches import clipped

PARTS = [np.array([4, 0, 2]), np.array([], dtype=np.int64), np.array([5])]
"""Rows of each minibatch; rows 1 and 3 have no advantage."""


def samples() -> Batch:
    """Responses of 1 to 6 tokens with a weight per sequence; all weights sum to the number of parts."""
    random = np.random.default_rng(0)
    steps = []
    for length in range(1, 7):
        prompt, response = (tuple(map(int, random.integers(0, 50, size))) for size in (3, length))
        steps.append(Step(prompt, response, as_logprobs((-3.5,) * length), "", "", "", None, ()))
    lengths = np.array([len(step.response_ids) for step in steps])
    weights = token_weights(lengths, "sequence_mean", float(lengths.sum()), len(steps)) * len(PARTS)
    return Batch.of_steps(tuple(steps), np.array([1.0, 0.0, -0.5, 0.0, 2.0, -1.0]), weights)


def expected(model: PreTrainedModel, batch: Batch) -> dict[str, float]:
    """The same figures from their definitions, one row of the whole text at a time."""
    weights, figures, norms = [], [], []
    for part in PARTS:
        loss = torch.tensor(0.0)
        for row in part:
            (prompt, response), weight = batch.pairs.rows[row], float(batch.weights[row])
            alone = batch.cut(np.array([row]))
            logprobs = torch.log_softmax(model(torch.tensor([prompt + response])).logits[0], dim=-1)
            logprobs = logprobs[len(prompt) - 1 : -1]
            chosen = logprobs.gather(1, torch.tensor(response)[:, None]).squeeze(1)
            ratio = torch.exp(chosen - torch.tensor(alone.logprobs))
            entropy = -(logprobs.exp() * logprobs).sum(1)
            clipped = (ratio < 0.8) | (ratio > 1.2)
            for token in range(len(ratio)):
                figures.append([entropy[token].item(), clipped[token].item()])
                weights.append(weight)
            advantage = float(alone.advantages[0])
            surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            loss = loss - (weight * surrogate).sum()
        if len(part):
            model.zero_grad()
            loss.backward()
            norms.append(float(torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm()))  # type: ignore[union-attr]
    entropy, clip_fraction = np.average(np.array(figures), axis=0, weights=weights)
    return {"entropy": entropy, "clip_fraction": clip_fraction, "gradient_norm": float(np.mean(norms))}


def main() -> None:
    """Print the comparison, and the results of two passes of the learner over the same responses."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3,
        resid_pdrop=0.3, embd_pdrop=0.3, attn_pdrop=0.3,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    twin = copy_model(model)
    join_ranks(Ranks(), free_port())
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.0))]
    learner = Learner(model, parts, AdamW(1e-12), Passing(1.0, 12), Ranks())
    batch = samples()
    found = mean_metrics([learner.update(batch.cut(part)) for part in PARTS])
    again = mean_metrics([learner.update(batch.cut(part)) for part in PARTS])
    print(json.dumps({"found": found, "expected": expected(twin, batch), "again": again}))


if __name__ == "__main__":
    main()
