"""Ranks that divide the optimizer's state of imitation make the same updates as a whole state, to the bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.chains import Pairs
from skillpress.core.errors import StorageError
from skillpress.core.resume import SaveTimer
from skillpress.models.policy import Policy
from skillpress.models.policy.precision import MasterWeights
from skillpress.models.policy.scorers import choose_scorer
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.imitation.optimizers import OPTIMIZERS, Schedule
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.shares import owners
from skillpress.training.imitation.trainer import add_gradients, batches, imitate, shared
from tests.support.models.tiny import tiny_policy
from tests.support.training.thread_ranks import on_ranks

PARAMETERS = ImitationParameters(
    thoughts=None,
    demonstrations=1,
    detour_rate=0.0,
    batch_size=8,
    optimizer="adamw",
    learning_rate=0.01,
    epochs=1,
)
LIMIT = 60
"""Tokens of a pass, so that a batch takes several."""


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Sums of several cores are taken in another order. Threads have a number of their own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def samples() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    random = np.random.default_rng(0)

    def drawn(most: int) -> tuple[int, ...]:
        return tuple(random.integers(3, 50, random.integers(1, most)).tolist())

    return [(drawn(9), drawn(5)) for _ in range(40)]


def policy_of(dtype: torch.dtype) -> Policy:
    policy = tiny_policy()
    torch.nn.Module.to(policy.model, dtype)
    return policy


def flat(policy: Policy) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in policy.model.parameters()])


def with_whole_state(parameters: ImitationParameters, dtype: torch.dtype, size: int) -> torch.Tensor:
    """The weights if one optimizer has the state of all weights, and gradients of ``size`` ranks add up."""
    policy, pairs = policy_of(dtype), Pairs.of(samples())
    scorer = choose_scorer(policy.model.train())
    names = [name for name, _ in scorer.named_parameters()]
    weights = MasterWeights(scorer.parameters())
    optimizers = OPTIMIZERS[parameters.optimizer](
        list(zip(names, weights.masters, strict=True)), parameters.learning_rate
    )
    updates = [*batches(pairs.chains, parameters, 0)]
    factor = Schedule.of(parameters, len(updates)).factor
    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, factor) for optimizer in optimizers]
    for rows in updates:
        batch = pairs.select(rows)
        tokens, found = int(batch.response_lengths.sum()), []
        for rank in range(size):
            for master in weights.masters:
                master.grad = None
            add_gradients(scorer, weights, shared(batch, Ranks(rank, size)), tokens, LIMIT)
            found.append([master.grad for master in weights.masters])
        for master, *gradients in zip(weights.masters, *found, strict=True):
            master.grad = sum(gradients[1:], gradients[0])
        torch.nn.utils.clip_grad_norm_(weights.masters, 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        weights.give_weights()
    return flat(policy)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_weights_are_those_of_a_whole_state_bit_for_bit(optimizer: str, dtype: torch.dtype) -> None:
    parameters = PARAMETERS.model_copy(update={"optimizer": optimizer})

    policies = [policy_of(dtype) for _ in range(3)]  # made here: threads share torch's random numbers

    def imitated(ranks: Ranks) -> torch.Tensor:
        torch.set_num_threads(1)
        policy = policies[ranks.rank]
        imitate(policy, samples(), parameters, 0, ranks=ranks, token_limit=LIMIT)
        return flat(policy)

    expected = with_whole_state(parameters, dtype, size=3)
    assert not expected.equal(flat(policy_of(dtype)))
    assert [found.equal(expected) for found in on_ranks(3, imitated)] == [True] * 3


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(1, 9))
def test_a_rank_owns_at_most_its_equal_part_and_one_tensor_more(sizes: list[int], ranks: int) -> None:
    found = owners(sizes, ranks)
    held = [
        sum(size for size, owner in zip(sizes, found, strict=True) if owner == rank) for rank in range(ranks)
    ]
    assert sum(held) == sum(sizes) and max(held) <= sum(sizes) / ranks + max(sizes)


class KilledError(Exception):
    """Raised in place of a kill."""


def test_ranks_that_were_killed_go_on_from_their_shares(tmp_path: Path) -> None:
    checkpoint = tmp_path / "imitation.pt"

    def imitated(
        ranks: Ranks, policies: list[Policy], killed_after: int | None = None
    ) -> torch.Tensor | None:
        torch.set_num_threads(1)
        policy = policies[ranks.rank]

        def kill(done: int, total: int, loss: float) -> None:
            if done == killed_after:
                raise KilledError

        try:
            imitate(
                policy, samples(), PARAMETERS, 0, kill, checkpoint, SaveTimer(0.0), ranks, token_limit=LIMIT
            )
        except KilledError:
            ranks.meeting.abort()  # type: ignore[attr-defined]  # the others lose their connection
            return None
        except threading.BrokenBarrierError:
            return None
        return flat(policy)

    first, again = ([policy_of(torch.bfloat16) for _ in range(2)] for _ in range(2))
    assert on_ranks(2, partial(imitated, policies=first, killed_after=3)) == [None, None]
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["imitation-2-0.pt", "imitation-2-1.pt", "imitation.pt"]
    expected = with_whole_state(PARAMETERS, torch.bfloat16, 2)
    for found in on_ranks(2, partial(imitated, policies=again)):
        assert found is not None and found.equal(expected)


def test_a_share_that_is_missing_is_named(tmp_path: Path) -> None:
    checkpoint, policies = tmp_path / "imitation.pt", [tiny_policy() for _ in range(2)]

    def imitated(ranks: Ranks) -> None:
        imitate(
            policies[ranks.rank], samples(), PARAMETERS, 0,
            checkpoint=checkpoint, timer=SaveTimer(0.0), ranks=ranks, token_limit=LIMIT,
        )  # fmt: skip

    on_ranks(2, imitated)
    for share in tmp_path.glob("imitation-*-*.pt"):
        share.unlink()
    with pytest.raises(
        StorageError, match=r"imitation\.pt: not a checkpoint of this imitation \(.*-[01]\.pt"
    ):
        on_ranks(2, imitated)
