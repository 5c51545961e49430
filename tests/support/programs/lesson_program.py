"""Trains a tiny policy on samples and lessons together: ``lesson_program.py NAME RANKS OUT [OPTION ...]``.

NAME is a DeepSpeed configuration, or ``plain`` for an independent loop in plain torch, which passes every
sequence through the model alone. With ``checkpointing`` the packed scorer is used; with ``distill`` there is
no KL; with ``uneven`` the first rank has all lessons and the last rank all samples.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import torch
from torch.multiprocessing.spawn import start_processes

from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy import Policy, token_scores
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.experience.erl import ERLParameters
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.lessons import Lessons, lessons_of
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.episodes import made_step
from tests.support.models.tiny import tiny_policy
from tests.support.programs.learner_program import ADAMW, samples, save
from tests.support.training.batches import clipped

UPDATES, LESSONS, ALPHA, ETA, TEMPERATURE = 3, 6, 0.7, 0.9, 1.25


def lessons(update: int) -> Batch:
    """Six lessons, with knowledge of any length above the plain prompt; some responses have one token."""
    random = np.random.default_rng(100 + update)

    def tokens(least: int, most: int) -> TokenIds:
        return tuple(map(int, random.integers(2, 50, random.integers(least, most))))

    steps = []
    for number in range(LESSONS):
        plain, response = tokens(1, 6), tokens(1, 2) if number < 2 else tokens(2, 6)
        given = (*tokens(1, 5), *plain)
        steps.append(
            made_step(
                prompt_ids=given,
                response_ids=response,
                logprobs=as_logprobs((-1.0,) * len(response)),
                plain_prompt_ids=plain,
            )
        )
    weights = np.full(LESSONS, 0.02 * (1 + update))
    return lessons_of(steps, weights)


def distributions(policy: Policy, prompt: TokenIds, response: TokenIds) -> torch.Tensor:
    """[response tokens, vocabulary] log-probabilities, by the model's own forward pass."""
    logits = policy.model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.float() / TEMPERATURE, -1)


def train_plain(policy: Policy, eta: float) -> dict[str, torch.Tensor]:
    """The loss written out again, sample by sample."""
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=0.0, betas=(0.8, 0.95), weight_decay=0.1)
    for update in range(UPDATES):
        optimizer.param_groups[0]["lr"] = 0.005 if update == 0 else 0.01
        optimizer.zero_grad()
        rows = samples(update)
        ends = rows.tokens.cumsum()[:-1]
        old, advantages = (np.split(each, ends) for each in (rows.logprobs, rows.advantages))
        for row, (prompt, response) in enumerate(rows.pairs.rows):
            logprobs = _taken(distributions(policy, prompt, response), response)
            ratio, advantage = torch.exp(logprobs - torch.tensor(old[row])), advantages[row][0]
            clipped = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            (-rows.weights[row] * clipped.sum()).backward()
        taught = lessons(update)
        assert taught.plain_prompts is not None
        each = zip(taught.pairs.rows, taught.plain_prompts, taught.weights, strict=True)
        for (prompt, response), without, weight in each:
            plain = distributions(policy, without, response)
            given = distributions(policy, prompt, response).detach()
            kl = torch.nn.functional.kl_div(plain, given, reduction="sum", log_target=True)
            (weight * (eta * kl - ALPHA * _taken(plain, response).sum())).backward()
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 0.5)
        optimizer.step()
    return policy.model.state_dict()


def _taken(logprobs: torch.Tensor, response: TokenIds) -> torch.Tensor:
    return logprobs[torch.arange(len(logprobs)), torch.tensor(response)]


def train(rank: int, size: int, port: int, configuration: str, output: str, options: list[str]) -> None:
    """Make this rank's share of the same updates, in passes of twenty tokens and a few whole
    distributions."""
    torch.set_num_threads(1)
    ranks, policy = Ranks(rank, size), tiny_policy()
    token_scores.CHUNK_LOGITS = 4 * policy.model.config.vocab_size
    join_ranks(ranks, port)
    eta = 0.0 if "distill" in options else ETA
    method = ERLParameters(name="erl", distill=ALPHA, kl=eta, retries=1, reflection="own")
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.0)), Lessons(method, policy.model.config.vocab_size)]
    passing = Passing(TEMPERATURE, 20, gradient_checkpointing="checkpointing" in options)
    learner = Learner(policy.model, parts, replace(ADAMW, configuration=configuration), passing, ranks)
    for update in range(UPDATES):
        own, taught = samples(update), lessons(update)
        mine, mine_taught = ranks.share(len(own)), ranks.share(LESSONS)
        if "uneven" in options:
            mine = range(len(own)) if rank == size - 1 else range(0)
            mine_taught = range(LESSONS) if rank == 0 else range(0)
        learner.begin_step(update + 1)
        rows, taught_rows = np.array(mine, np.int64), np.array(mine_taught, np.int64)
        measured = learner.update(own.cut(rows), taught.cut(taught_rows))
        tokens = int(taught.tokens.sum())
        assert measured.lessons["tokens"] == tokens
        np.testing.assert_allclose(measured.lessons["weight"], taught.weights[0] * tokens, rtol=1e-5)
        assert ("kl" in measured.lessons) == ("distill" not in options)
    save(learner.weights(), output, rank)


if __name__ == "__main__":
    name, count, out, *chosen = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    if name == "plain":
        save(train_plain(tiny_policy(), 0.0 if "distill" in chosen else ETA), out, 0)
    elif count == 1:
        train(0, 1, free_port(), name, out, chosen)
    else:  # ranks are forked, as this program itself (nursery.py), so that they need no imports
        arguments = (count, free_port(), name, out, chosen)
        start_processes(train, arguments, count, start_method="fork")
