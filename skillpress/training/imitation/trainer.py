"""The warm start: supervised learning on an oracle's demonstrations.

Each demonstrated step is one sample: the prompt that the policy would have seen, and the response for the
demonstrator's action. A policy made from scratch knows nothing about its environment. Without imitation no
rollout would succeed and reinforcement learning would have nothing to learn from. A bfloat16 policy is
updated through float32 master weights (see ``precision.py``).

Samples whose prompts extend one another (a policy's whole conversation) are a chain (``chains.py``). A chain
is drawn as one, so that each of its tokens goes through the model once: half the work where episodes have
four steps. A sample that extends no other is a chain by itself.

A batch goes through the model in passes of at most ``training.microbatch_tokens``, and the sum of their
gradients is the gradient of the whole batch. With ``training.gradient_checkpointing`` layers do not keep
their activations.

Ranks divide every batch and sum their gradients; each updates its share of the weights (``shares.py``). A
batch's loss is a mean over its tokens, whichever rank computes them, so the number of ranks changes only the
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.chains import Pairs
from skillpress.core.errors import StorageError
from skillpress.core.resume import SaveTimer
from skillpress.core.seeds import generator
from skillpress.core.storage import atomic_path
from skillpress.models.policy.passes import fit_one_pass, pass_rows
from skillpress.models.policy.policy import Policy
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import Scorer, pack_responses
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.imitation.optimizers import OPTIMIZERS, Schedule
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.samples import Sample, Samples
from skillpress.training.imitation.shares import Gradients, updated

SHORTEST = 0.6
"""The shortest sample of a pass has at least this share of the longest one's tokens."""


def imitate(
    policy: Policy,
    demonstrations: Sequence[Sample],
    parameters: ImitationParameters,
    seed: int,
    on_update: Callable[[int, int, float], None] = lambda done, total, loss: None,
    checkpoint: Path | None = None,
    timer: SaveTimer | None = None,
    ranks: Ranks = Ranks(),  # noqa: B008  frozen
    *,
    token_limit: int,
) -> list[float]:
    """Train the policy in place on the mean negative log-likelihood of the responses' tokens.

    Args:
        policy: its layers may have gradient checkpointing on. Only weights with gradients are trained: with
            an adapter, the adapter alone.
        on_update: rank 0 calls it after each update with (updates done, all updates, loss of the last one).
        checkpoint: the file to resume from, with the same final weights, and to save to from time to time;
            None saves nothing. Several ranks save their shares beside it.
        timer: says when to save; None means a :class:`SaveTimer` with its default interval.
        ranks: all ranks call this with the same arguments; rank 0's timer counts.
        token_limit: the most tokens of one pass through the model; a longer sample has a pass of its own.

    Returns:
        The loss (nats per token) of every update, including those before an interruption.

    Raises:
        StorageError: the checkpoint is damaged.
    """
    timer = timer or SaveTimer()
    samples = demonstrations if isinstance(demonstrations, Samples) else Pairs.of(demonstrations)
    # The learning rate falls to 0 at the last update, so their number must be known before the first.
    updates = [*batches(samples.chains, parameters, seed)]
    learner = _Learner(policy, parameters, len(updates), token_limit, ranks)
    losses = learner.load(checkpoint) if checkpoint and checkpoint.exists() else []
    for done, rows in enumerate(updates, 1):
        if done <= len(losses):
            continue
        losses.append(learner.update(samples.select(rows)))
        if ranks.rank == 0:
            on_update(done, len(updates), losses[-1])
        # One clock decides: ``save`` has a barrier, which all ranks must reach after the same update.
        if checkpoint and ranks.maximum([int(ranks.rank == 0 and timer())])[0]:
            with timer.measured():
                learner.save(checkpoint, losses)
    policy.model.eval()
    return losses


class _Learner:
    """The policy's model, its optimizers and their schedule."""

    def __init__(
        self, policy: Policy, parameters: ImitationParameters, updates: int, token_limit: int, ranks: Ranks
    ) -> None:
        self._model, self._token_limit, self._ranks = policy.model, token_limit, ranks
        # Imitation takes no ratios, so dropout may be on; reinforcement learning has it off.
        self._scorer = choose_scorer(policy.model.train())
        trained = [named for named in self._scorer.named_parameters() if named[1].requires_grad]
        self._weights = updated(trained, ranks)
        self._optimizers = OPTIMIZERS[parameters.optimizer](self._weights.own, parameters.learning_rate)
        factor = Schedule.of(parameters, updates).factor
        self._schedules = [
            torch.optim.lr_scheduler.LambdaLR(optimizer, factor) for optimizer in self._optimizers
        ]

    def update(self, samples: Pairs) -> float:
        """One update on this rank's share of the samples; returns the mean loss over all response tokens."""
        self._weights.zero_gradients()
        tokens = int(samples.response_lengths.sum())
        own = shared(samples, self._ranks)
        loss = add_gradients(self._scorer, self._weights, own, tokens, self._token_limit)
        self._weights.clip()
        for optimizer, schedule in zip(self._optimizers, self._schedules, strict=True):
            optimizer.step()
            schedule.step()
        self._weights.give_weights()
        return self._ranks.sum({"loss": loss})["loss"]

    def save(self, checkpoint: Path, losses: list[float]) -> None:
        """Write everything that the next update depends on. Several ranks each write their share; the
        checkpoint itself follows when all shares are there, and says which they are."""
        state = {
            "losses": losses,
            "weights": self._weights.state(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "schedules": [schedule.state_dict() for schedule in self._schedules],
        }
        if self._ranks.size == 1:
            _write(checkpoint, state)
            return
        done = len(losses)
        _write(_share(checkpoint, done, self._ranks.rank), state)
        self._ranks.barrier()
        if self._ranks.rank == 0:
            # After the barrier: this file says that all shares are complete.
            _write(checkpoint, {"losses": losses})
            kept = {_share(checkpoint, done, rank) for rank in range(self._ranks.size)}
            for other in set(checkpoint.parent.glob(_share(checkpoint, "*", "*").name)) - kept:
                other.unlink()

    def load(self, checkpoint: Path) -> list[float]:
        """Resume from a checkpoint; returns the losses so far."""
        try:
            found = self._read(checkpoint)
            losses = [float(loss) for loss in found["losses"]]
            if self._ranks.size > 1:
                found = self._read(_share(checkpoint, len(losses), self._ranks.rank))
            self._weights.restore(found["weights"])
            for part, stored in zip(self._optimizers, found["optimizers"], strict=True):
                part.load_state_dict(stored)
            for schedule, stored in zip(self._schedules, found["schedules"], strict=True):
                schedule.load_state_dict(stored)
            return losses
        except (
            FileNotFoundError, RuntimeError, UnpicklingError, EOFError, KeyError, TypeError, ValueError
        ) as error:  # fmt: skip
            message = f"{checkpoint}: not a checkpoint of this imitation ({error}); delete it"
            raise StorageError(message) from error

    def _read(self, file: Path) -> dict[str, Any]:
        # ``weights_only``: a file may not run code while it is read.
        found: dict[str, Any] = torch.load(file, weights_only=True, map_location=self._model.device)
        return found


def _write(file: Path, state: dict[str, Any]) -> None:
    with atomic_path(file) as temporary:
        torch.save(state, temporary)


def _share(checkpoint: Path, done: int | str, rank: int | str) -> Path:
    """The file of a rank's share after ``done`` updates."""
    return checkpoint.with_name(f"{checkpoint.stem}-{done}-{rank}{checkpoint.suffix}")


def add_gradients(
    scorer: Scorer,
    weights: Gradients,
    samples: Sequence[Sample] | Pairs,
    tokens: int,
    token_limit: int,
) -> float:
    """Add these samples' part of a batch's gradient to the master weights' gradients. Returns their part of
    the loss.

    Args:
        tokens: number of response tokens of the whole batch; its loss is their mean.
        token_limit: see :func:`imitate`.
    """
    loss, known = 0.0, Pairs.of(samples)
    for rows in passes(known, token_limit, scorer.shares_prompts):
        packed = pack_responses(known.select(rows), scorer.model.device)
        logprobs, _ = scorer(packed, 1.0)
        share = -logprobs.mean() * (len(logprobs) / tokens)
        share.backward()
        weights.take_gradients()
        loss += float(share.detach())
    return loss


def batches(
    chains: Sequence[range], parameters: ImitationParameters, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Rows of each update: about ``batch_size`` samples in whole chains, exactly ``batch_size`` where every
    chain is one sample. Every epoch has each chain once, in a new random order."""
    lengths = np.array([len(chain) for chain in chains])
    for epoch in range(parameters.epochs):
        order = generator(seed, "imitation", epoch).permutation(len(chains))
        before = np.cumsum(lengths[order]) - lengths[order]
        update = before // parameters.batch_size
        for numbers in np.split(order, np.flatnonzero(np.diff(update)) + 1):
            yield np.concatenate([np.asarray(chains[number], np.int64) for number in numbers])


def shared(samples: Pairs, ranks: Ranks) -> Pairs:
    """This rank's chains of a batch, divided by size so that all ranks have about the same work."""
    if ranks.size == 1:
        return samples
    by_size = sorted(range(len(samples.chains)), key=lambda number: -_sizes(samples)[number])
    # Sizes decide only who gets a chain; the order within a rank stays the given one.
    return samples.select(_rows(samples, sorted(by_size[ranks.rank :: ranks.size])))


def passes(samples: Pairs, token_limit: int, shared: bool) -> Iterator[NDArray[np.int64]]:
    """Rows of each pass. Chains of about one size share a pass, up to the limit.

    Args:
        shared: whether a prompt that several responses follow goes through the model once.
    """
    for numbers in alike(_sizes(samples)):
        rows = _rows(samples, numbers)
        together = samples.select(rows)
        if fit_one_pass(together, token_limit, shared):
            yield rows  # in the given order: another order would round differently
        else:
            yield from (rows[part] for part in pass_rows(together, token_limit, shared))


def _sizes(samples: Pairs) -> list[int]:
    """Tokens of each chain: those of its last prompt and response."""
    return [sum(map(len, samples.rows[chain[-1]])) for chain in samples.chains]


def _rows(samples: Pairs, numbers: Sequence[int]) -> NDArray[np.int64]:
    """The rows of the chains with these numbers."""
    return np.array([row for number in numbers for row in samples.chains[number]], np.int64)


def alike(sizes: Sequence[int]) -> list[list[int]]:
    """Rows in groups of about one size, the longest first; rows of a group keep the given order.

    A short row in a pass with long ones costs as much as they do. (Batches of one size would save as much,
    but their samples have more in common than their size: imitation of TextWorld-Cooking ended at 0.193
    nats per token with them, and at 0.161 with randomly drawn batches.)
    """
    groups: list[list[int]] = []
    for row in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        if not groups or sizes[row] < SHORTEST * sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(row)
    return [sorted(group) for group in groups]
