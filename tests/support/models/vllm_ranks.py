"""Two ranks that each have an engine ``vllm``, for tests of their connection. A rank imports this module."""

from __future__ import annotations

import gc

import torch

from skillpress.core.engine import Completion, Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import generate
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.vllm import VllmParameters
from skillpress.models.policy import Policy, load_policy
from skillpress.rollouts.workers.distributed import Ranks, join_ranks
from skillpress.rollouts.workers.ranks import Report

PROMPTS: list[TokenIds] = [(3, 5, 7), (4, 6)]


def sampled(policy: Policy, ranks: Ranks) -> list[Completion]:
    """What a new engine samples, which is closed afterwards; each rank has seeds of its own."""
    demand = EngineDemand(longest=policy.context_length, slots=4, ranks=ranks)
    engine = VllmParameters(name="vllm", cache_gib=0.1).make(policy, demand)
    seeds = [10 * ranks.rank, 10 * ranks.rank + 1]
    found = generate(engine, PROMPTS, Sampling(max_new_tokens=4), seeds)
    engine.close()
    return found


def engines_end(
    folder: str, port: int | None, rank: int, size: int, report: Report
) -> tuple[list[Completion], list[Completion], list[int], bool]:
    """Two engines, one after the other: what each sampled, which ranks are still connected after both, and
    whether torch's default group is still there.

    Args:
        port: where the ranks meet; None leaves them unconnected, as when policies are only played.
    """
    ranks = Ranks(rank, size)
    if port is not None:
        join_ranks(ranks, port, 120)
    policy = load_policy(folder)
    first = sampled(policy, ranks)
    gc.collect()  # an engine that is collected must not end what belongs to the learner either
    second = sampled(policy, ranks)
    there = ranks.gather([rank]) if port is not None else []
    return first, second, there, torch.distributed.is_initialized()
