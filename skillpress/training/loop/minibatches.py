"""Minibatches of which every rank has an equal part, the same for any number of ranks.

Each rank has the samples of the episodes that it played. A rank with more failures has more samples, since a
failure lasts to the last step. Each minibatch is drawn over the samples of all ranks, and a rank learns from
its own samples in it. Ranks with more than their share of the tokens send some samples to ranks with less;
otherwise all ranks would wait for the slowest at every update. About a tenth of the samples are sent; the
rest of the exchange is two numbers per sample.

If the prompts of an episode's steps extend one another and the steps stay together, they cost little more
than the last of them alone. So the unit that is drawn and sent is a sequence of such steps; often it is a
single step. If the loss asks for whole trajectories, the unit is a trajectory.

Either the number of updates is given, so updates grow with the batch, or the size of an update is given. In
the second case shorter episodes mean fewer samples per batch and fewer updates. verl-agent gives the size, in
samples of all processes together.
"""

from __future__ import annotations

import numpy as np

from skillpress.core.columns import members
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import Batch, Indices


def updates_of_batch(minibatches: int, minibatch_size: int, samples: int) -> int:
    """The number of equal parts that a batch of samples is split into, at least 1.

    Args:
        minibatches: the number of parts if no size is given.
        minibatch_size: the most samples in a part; 0 means no limit.
        samples: number of samples of all processes, including those without advantage.
    """
    return -(-samples // minibatch_size) or 1 if minibatch_size else minibatches


def with_advantage(batch: Batch, whole_trajectories: bool) -> Indices:
    """The steps with an advantage other than 0 at some token, and those that are drawn for the KL term.

    Args:
        whole_trajectories: add the other steps of their trajectories.
    """
    teaching = np.zeros(len(batch), np.bool_)
    teaching[np.repeat(np.arange(len(batch)), batch.tokens)[batch.advantages != 0]] = True
    if batch.kl_factors is not None:
        teaching |= batch.kl_factors > 0
    if whole_trajectories:
        teaching = np.isin(batch.trajectory, batch.trajectory[teaching])
    return np.flatnonzero(teaching)


def minibatches(
    samples: Batch, count: int, ranks: Ranks, random: np.random.Generator, whole_trajectories: bool = False
) -> list[Batch]:
    """This rank's parts of ``count`` minibatches of all ranks' samples.

    Args:
        samples: this rank's own, a cut of its batch; all ranks call this together.
        random: a generator that has the same state on all ranks.
        whole_trajectories: keep the samples of a trajectory together, in order.
    """
    everybodys = ranks.gather([_sequences(samples, whole_trajectories)])
    owners = np.repeat(np.arange(ranks.size), [len(part) for part in everybodys])
    costs, lengths = np.concatenate(everybodys).T
    parts = evenly_split(random.permutation(len(costs)), lengths, count)
    learners = owners.copy()
    if ranks.size > 1:
        for part in parts:
            learners[part] = evenly(owners[part], costs[part], ranks.size)
    rows = [members(part, lengths) for part in parts]
    if ranks.size == 1:
        return [samples.cut(part) for part in rows]
    return _exchanged(samples, rows, np.repeat(owners, lengths), np.repeat(learners, lengths), ranks)


def _sequences(samples: Batch, whole_trajectories: bool) -> Indices:
    """[sequences, 2] numbers of tokens and samples of each sequence, or of each whole trajectory."""
    pairs = samples.pairs
    first = np.array([chain.start for chain in pairs.chains], np.int64)
    counted = np.ones((len(pairs), 2), np.int64)
    counted[:, 0] = 0
    # The last pair of a chain contains the others, so its tokens are the cost of the whole chain.
    counted[first, 0] = [sum(map(len, pairs.rows[chain[-1]])) for chain in pairs.chains]
    if whole_trajectories:
        # Number -1 before the first row makes it the beginning of a trajectory.
        first = np.nonzero(np.diff(samples.trajectory, prepend=-1))[0]
    return np.add.reduceat(counted, first) if len(first) else counted


def evenly_split(order: Indices, lengths: Indices, count: int) -> list[Indices]:
    """Sequences in this order, split into parts with about the same number of samples.

    If every sequence is one sample, the parts are those of ``np.array_split``. Otherwise a sequence belongs
    to the part of its first sample, so a part may be empty.
    """
    edges = np.cumsum([len(part) for part in np.array_split(np.arange(lengths.sum()), count)])
    begins = np.cumsum(lengths[order]) - lengths[order]
    return np.split(order, np.searchsorted(begins, edges[:-1]))


def evenly(owners: Indices, costs: Indices, size: int) -> Indices:
    """The rank that learns from each sample: its owner, or one with less work if the owner has too much."""
    learners = owners.copy()
    loads = np.bincount(owners, costs, size)
    share = costs.sum() / size
    for row, (owner, cost) in enumerate(zip(owners, costs, strict=True)):
        # An owner sends a sequence only if its full share remains, so it does not end with less than that.
        if loads[owner] - cost >= share:
            receiver = int(loads.argmin())
            learners[row] = receiver
            loads[owner] -= cost
            loads[receiver] += cost
    return learners


def _exchanged(
    samples: Batch, parts: list[Indices], owners: Indices, learners: Indices, ranks: Ranks
) -> list[Batch]:
    """The samples that this rank learns from, part by part, including samples of other ranks."""
    # ``gather`` returns the samples rank by rank, so this rank's begin after those of lower ranks.
    first = int((owners < ranks.rank).sum())
    leaving = np.nonzero((owners == ranks.rank) & (learners != ranks.rank))[0]
    travelling = ranks.gather([(leaving, samples.cut(leaving - first))])
    numbers = np.concatenate([rows for rows, _ in travelling])
    pool = Batch.joined([samples, *(handed for _, handed in travelling)])
    place = np.full(len(owners), -1, np.int64)
    place[first : first + len(samples)] = np.arange(len(samples))
    foreign = owners[numbers] != ranks.rank
    place[numbers[foreign]] = (len(samples) + np.arange(len(numbers)))[foreign]
    return [pool.cut(place[part[learners[part] == ranks.rank]]) for part in parts]
