"""Trains a tiny policy for three updates and saves what changed: ``learner_program.py NAME RANKS OUT``.

NAME is a DeepSpeed configuration, or ``plain`` for an independent loop in plain torch. With ``restore`` a
second learner loads the first one's checkpoint and makes the last update. With ``chunks`` tokens are scored
three at a time. With ``checkpointing`` layers drop their activations and the packed scorer is used. With
``lora`` only low-rank changes are trained, with ``rows`` also four rows of both embeddings. With ``turn`` or
``trajectory`` ratios are taken over these; a trajectory is three samples. With ``values`` a value head is
trained too, and its values of the first samples are saved with the weights.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.multiprocessing.spawn import start_processes

from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import Step
from skillpress.models.policy import Policy, token_scores
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scoring import Responses, ResponseScorer, pack_responses
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.model_pass import scored
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.reference import Reference
from skillpress.training.loop.state_values import StateValues
from skillpress.training.loop.update import UpdatePart
from skillpress.training.loop.value_head import ValueHead
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import GRPO, PPO, algorithm

UPDATES, SAMPLES, KL = 3, 12, 0.05
RANK, ALPHA = 3, 6
ROWS = (4, 17, 33, 51)
TABLES = ("model.embed_tokens.weight", "lm_head.weight")
"""The embeddings of the tiny policy, which are not tied."""
ADAMW = AdamW(1e-2, weight_decay=0.1, betas=(0.8, 0.95), gradient_clipping=0.5, warmup_steps=1)


def samples(update: int, level: str = "token") -> Batch:
    """Twelve samples of different lengths; the weights of all sum to 1.

    If the old log-probabilities were far off, all products of ratios would be far outside the clip.
    """
    old = -3.5 if level == "token" else -4.0
    random = np.random.default_rng(update)
    steps = []
    for _ in range(SAMPLES):
        prompt, response = (tuple(map(int, random.integers(2, 50, random.integers(1, 6)))) for _ in range(2))
        steps.append(Step(prompt, response, as_logprobs((old,) * len(response)), "", "", "", None, ()))
    tokens = sum(len(step.response_ids) for step in steps)
    numbers = np.arange(SAMPLES) // 3
    weights = np.full(SAMPLES, 1.0 / tokens)
    return Batch.of_steps(tuple(steps), random.normal(size=SAMPLES), weights, trajectory=numbers)


def with_targets(batch: Batch, update: int) -> Batch:
    """The batch with targets of values, and old values such that some are clipped."""
    random = np.random.default_rng([update, 1])
    old, returns = random.normal(scale=0.3, size=SAMPLES), random.normal(size=SAMPLES)
    made = random.integers(0, 30, SAMPLES)
    weights = np.full(SAMPLES, 1.0 / SAMPLES)
    return replace(batch, values=old, value_targets=returns, value_weights=weights, made=made)


Score = Callable[[Responses], torch.Tensor]
"""Maps responses to log-probabilities."""


def train_plain(policy: Policy, level: str) -> dict[str, torch.Tensor]:
    """Train all weights without DeepSpeed; returns the final weights."""
    scorer = ResponseScorer(policy.model)
    update_plainly(policy, lambda responses: scorer(responses, 1.0)[0], list(scorer.parameters()), level)
    return policy.model.state_dict()


def train_plain_lora(policy: Policy, level: str, ids: Sequence[int] = ()) -> dict[str, torch.Tensor]:
    """W + alpha/r B A in place of every W, by hand; A starts as the adapter's does, B at zero. The rows
    ``ids`` of the embeddings are trained too."""
    scorer, base = ResponseScorer(copy_model(policy.model)), policy.model.state_dict()
    start = LoraAdapter(copy_model(policy.model), RANK, ALPHA, seed=0).saved(torch.Tensor.detach).tensors
    rows = {
        name.removeprefix("base_model.model.").replace("lora_A.", ""): value.clone().requires_grad_()
        for name, value in start.items()
        if "lora_A" in name
    }
    columns = {name: torch.zeros(len(base[name]), RANK, requires_grad=True) for name in rows}
    place = torch.tensor(ids, dtype=torch.long)
    words = {name: base[name][place].clone().requires_grad_() for name in TABLES if ids}

    def weights() -> dict[str, torch.Tensor]:
        changed = {name: base[name] + ALPHA / RANK * columns[name] @ rows[name] for name in rows}
        return {**changed, **{name: base[name].index_copy(0, place, new) for name, new in words.items()}}

    def score(responses: Responses) -> torch.Tensor:
        changed = {f"model.{name}": weight for name, weight in weights().items()}
        if ids:
            changed["scores.weight"] = changed["model.lm_head.weight"]
        logprobs: torch.Tensor = torch.func.functional_call(scorer, changed, (responses, 1.0))[0]
        return logprobs

    update_plainly(policy, score, [*rows.values(), *columns.values(), *words.values()], level)
    return {**base, **{name: weight.detach() for name, weight in weights().items()}}


def train_plain_values(policy: Policy, level: str) -> dict[str, torch.Tensor]:
    """Train all weights and, with five times the learning rate, a head on the time and on the model's own
    hidden state at the end of each prompt."""
    scorer = ResponseScorer(policy.model)
    head, bias, time = torch.zeros(policy.model.config.hidden_size), torch.zeros(1), torch.zeros(3)

    def values(batch: Batch) -> torch.Tensor:
        angles = [math.pi * made / 30 for made in batch.made]
        waves = torch.tensor([[math.cos(a), math.cos(2 * a), math.cos(3 * a)] for a in angles])
        prompts = [torch.tensor([prompt]) for prompt, _ in batch.pairs.rows]
        states = [policy.model(ids, output_hidden_states=True).hidden_states[-1][0, -1] for ids in prompts]
        return torch.stack(states) @ head + bias + waves @ time

    def of_values(update: int) -> torch.Tensor:
        batch = with_targets(samples(update, level), update)
        old, returns = torch.tensor(batch.values).float(), torch.tensor(batch.value_targets).float()
        found = values(batch)
        near = torch.minimum(torch.maximum(found, old - 0.2), old + 0.2)
        return 0.5 * torch.maximum((found - returns) ** 2, (near - returns) ** 2).mean()

    fast = [weight.requires_grad_() for weight in (head, bias, time)]
    update_plainly(
        policy, lambda responses: scorer(responses, 1.0)[0], list(scorer.parameters()), level, of_values, fast
    )
    return {**policy.model.state_dict(), "values": values(with_targets(samples(0), 0)).detach()}


def update_plainly(
    policy: Policy,
    score: Score,
    trained: list[torch.Tensor],
    level: str,
    more: Callable[[int], torch.Tensor | float] = lambda update: 0.0,
    fast: Sequence[torch.Tensor] = (),
) -> None:
    """One batch in one process without DeepSpeed, with the loss written out again."""
    reference = ResponseScorer(copy_model(policy.model))
    groups = [{"params": part} for part in (trained, list(fast)) if part]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.8, 0.95), weight_decay=0.1)
    for update in range(UPDATES):
        for group, factor in zip(optimizer.param_groups, (1, 5), strict=False):
            group["lr"] = factor * (0.005 if update == 0 else 0.01)
        drawn = samples(update, level)
        responses = pack_responses(drawn.pairs)
        logprobs = score(responses)
        with torch.no_grad():
            start, _ = reference(responses, 1.0)
        batch = scored(drawn, logprobs)
        ratio, share = ratios(logprobs - batch.old_logprobs, batch.response, level)
        surrogate = share * torch.minimum(ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages)
        kl = torch.exp(start - logprobs) - (start - logprobs) - 1
        optimizer.zero_grad()
        ((batch.weights * (KL * kl - surrogate)).sum() + more(update)).backward()
        torch.nn.utils.clip_grad_norm_([*trained, *fast], 0.5)
        optimizer.step()


def ratios(log_ratio: torch.Tensor, response: torch.Tensor, level: str) -> tuple[torch.Tensor, torch.Tensor]:
    """[tokens] the ratio of each token's unit, and 1 / its tokens."""
    unit = {"token": torch.arange(len(response)), "turn": response, "trajectory": response // 3}[level]
    own = (unit[:, None] == unit[None, :]).float()
    return torch.exp(own @ log_ratio), 1 / own.sum(1)


def rows_of(options: list[str]) -> Sequence[int]:
    return ROWS if "rows" in options else ()


def level_of(options: list[str]) -> str:
    return next((option for option in options if option in ("turn", "trajectory")), "token")


def train(rank: int, size: int, port: int, configuration: str, output: str, options: list[str]) -> None:
    """Make this rank's share of the same updates, in microbatches of at most twenty tokens."""
    torch.set_num_threads(1)
    if "chunks" in options:
        token_scores.CHUNK_LOGITS = 3 * tiny_policy().model.config.vocab_size
    ranks, level, valued = Ranks(rank, size), level_of(options), "values" in options
    join_ranks(ranks, port)

    def new_learner() -> Learner:
        section, model = PPO if valued else GRPO, tiny_policy().model
        method = algorithm(section, clip_low=0.2, clip_high=0.2, kl_coefficient=KL, ratio=level)
        adapter = LoraAdapter(model, RANK, ALPHA, 0, rows_of(options)) if "lora" in options else None
        parts: list[UpdatePart] = [PolicyLoss(method), Reference(model, adapter)]
        if valued:
            parts.append(StateValues(method, ValueHead(model, 30, rate=5.0)))
        optimizer = replace(ADAMW, configuration=configuration)
        passing = Passing(1.0, 20, gradient_checkpointing="checkpointing" in options)
        return Learner(model, parts, optimizer, passing, ranks, adapter)

    learner = new_learner()
    check_scores(learner, samples(0).cut(np.array(ranks.share(SAMPLES))), configuration)
    for update in range(UPDATES):
        if "restore" in options and update == UPDATES - 1:
            folder = Path(f"{output}.checkpoint")
            folder.mkdir(exist_ok=True)
            learner.save(folder)
            ranks.barrier()
            learner = new_learner()
            learner.load(folder)
        learner.begin_step(update + 1)
        batch = with_targets(samples(update, level), update) if valued else samples(update, level)
        (scored,) = learner.prepare([batch.cut(np.array(ranks.share(SAMPLES)))])
        learner.update(scored)
    values = {"values": torch.tensor(learner.scoring.values(with_targets(samples(0), 0)))} if valued else {}
    save({**learner.weights(), **values}, output, rank)


def check_scores(learner: Learner, mine: Batch, configuration: str) -> None:
    """Before any update the learner scores like the model itself, on whatever devices its weights are."""
    scorer, tolerance = ResponseScorer(tiny_policy().model), 1e-5 if "fp32" in configuration else 0.1
    own = np.split(learner.scoring.logprobs(mine), mine.tokens.cumsum()[:-1])
    for pair, found in zip(mine.pairs.rows, own, strict=True):
        with torch.no_grad():
            expected, _ = scorer(pack_responses([pair]), 1.0)
        np.testing.assert_allclose(found, expected, atol=tolerance)


def save(weights: dict[str, torch.Tensor], output: str, rank: int) -> None:
    """Save how far each weight has moved, and each value, which was 0."""
    start = tiny_policy().model.state_dict()
    if rank == 0:
        torch.save({name: value.float() - start.get(name, 0.0) for name, value in weights.items()}, output)


if __name__ == "__main__":
    name, count, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if name == "plain":
        kinds: dict[str, Callable[[Policy, str], dict[str, torch.Tensor]]] = {
            "lora": partial(train_plain_lora, ids=rows_of(sys.argv[4:])),
            "values": train_plain_values,
        }
        plainly = next((kinds[option] for option in sys.argv[4:] if option in kinds), train_plain)
        save(plainly(tiny_policy(), level_of(sys.argv[4:])), out, 0)
    elif count == 1:
        train(0, 1, free_port(), name, out, sys.argv[4:])
    else:  # ranks are forked, as this program itself (nursery.py), so that they need no imports
        arguments = (count, free_port(), name, out, sys.argv[4:])
        start_processes(train, arguments, count, start_method="fork")
