"""Minibatches that every rank has an equal part of, and that are the same however many ranks there are.

Each rank brings the samples of the episodes that it played: more where more of them failed, since a
failure lasts to the last step. What is one minibatch is drawn over the samples of all ranks. A rank
learns from its own samples in it, but that those with more than their share of the tokens hand some over
to those with less: otherwise all would wait for the slowest at every update. Few samples travel, about a
tenth; the rest of the exchange is two numbers per sample.

Steps of an episode whose prompts extend one another cost little more than the last of them alone, if they
stay together. So what is drawn, and what travels, is a sequence of such steps; mostly it is a single step.
Where the loss asks for whole trajectories, it is a trajectory.

The number of updates is either given, so that updates grow with the batch, or follows from the size of one:
as episodes grow shorter, a batch of as many episodes holds fewer samples and takes fewer updates. verl-agent
gives the size, in samples of all processes together.
"""

from __future__ import annotations

import numpy as np

from skillpress.learn.algorithms.batch import Indices, members
from skillpress.learn.training.samples import Samples
from skillpress.play.workers.distributed import Ranks


def updates_of_batch(minibatches: int, minibatch_size: int, samples: int) -> int:
    """How many equal parts a batch of samples is cut into, at least 1.

    Args:
        minibatches: the number, where no size is given.
        minibatch_size: samples in a part at most; 0 is no limit.
        samples: of all processes, those without an advantage included.
    """
    return -(-samples // minibatch_size) or 1 if minibatch_size else minibatches


def minibatches(samples: Samples, count: int, ranks: Ranks, random: np.random.Generator) -> list[Samples]:
    """This rank's parts of ``count`` minibatches of all ranks' samples.

    Args:
        samples: this rank's own; all ranks call this together.
        random: in the same state on all ranks.
    """
    everybodys = ranks.gather([_sequences(samples)])
    owners = np.repeat(np.arange(ranks.size), [len(part) for part in everybodys])
    costs, lengths = np.concatenate(everybodys).T
    parts = evenly_split(random.permutation(len(costs)), lengths, count)
    learners = owners.copy()
    if ranks.size > 1:
        for part in parts:
            learners[part] = evenly(owners[part], costs[part], ranks.size)
    rows = [members(part, lengths) for part in parts]
    if ranks.size == 1:
        return [samples.select(part) for part in rows]
    return _exchanged(samples, rows, np.repeat(owners, lengths), np.repeat(learners, lengths), ranks)


def _sequences(samples: Samples) -> Indices:
    """[sequences, 2] tokens and samples of each, or of each trajectory where these stay whole."""
    pairs = samples.pairs
    first = np.array([chain.start for chain in pairs.chains], np.int64)
    counted = np.ones((len(pairs), 2), np.int64)
    counted[:, 0] = 0
    counted[first, 0] = [sum(map(len, pairs.rows[chain[-1]])) for chain in pairs.chains]
    if samples.trajectory is not None:
        first = np.nonzero(np.diff(samples.trajectory, prepend=-1))[0]
    return np.add.reduceat(counted, first) if len(first) else counted


def evenly_split(order: Indices, lengths: Indices, count: int) -> list[Indices]:
    """Sequences in this order, cut into parts of about as many samples each.

    Where every sequence is one sample, the parts are those of ``np.array_split``. Otherwise a sequence
    belongs to the part that its first sample falls into, so a part may be empty.
    """
    edges = np.cumsum([len(part) for part in np.array_split(np.arange(lengths.sum()), count)])
    begins = np.cumsum(lengths[order]) - lengths[order]
    return np.split(order, np.searchsorted(begins, edges[:-1]))


def evenly(owners: Indices, costs: Indices, size: int) -> Indices:
    """Who learns from each sample: its owner, or the rank with the least to do where the owner has more
    than its share without it."""
    learners = owners.copy()
    loads = np.bincount(owners, costs, size)
    share = costs.sum() / size
    for row, (owner, cost) in enumerate(zip(owners, costs, strict=True)):
        if loads[owner] - cost >= share:
            receiver = int(loads.argmin())
            learners[row] = receiver
            loads[owner] -= cost
            loads[receiver] += cost
    return learners


def _exchanged(
    samples: Samples, parts: list[Indices], owners: Indices, learners: Indices, ranks: Ranks
) -> list[Samples]:
    """The samples that this rank learns from, part by part, those of other ranks among them."""
    first = int((owners < ranks.rank).sum())
    leaving = np.nonzero((owners == ranks.rank) & (learners != ranks.rank))[0]
    travelling = ranks.gather([(leaving, samples.select(leaving - first))])
    numbers = np.concatenate([rows for rows, _ in travelling])
    pool = Samples.concatenate([samples, *(handed for _, handed in travelling)])
    place = np.full(len(owners), -1, np.int64)
    place[first : first + len(samples)] = np.arange(len(samples))
    foreign = owners[numbers] != ranks.rank
    place[numbers[foreign]] = (len(samples) + np.arange(len(numbers)))[foreign]
    return [pool.select(place[part[learners[part] == ranks.rank]]) for part in parts]
