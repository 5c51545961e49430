"""One rank of a collection, which loads each policy when its turn comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import torch

from skillpress.core.interface import Agent
from skillpress.experiment.collection import CollectionJob, Play, play_share
from skillpress.experiment.experiment import Experiment
from skillpress.models.policy.attention import for_sampling, use_attention
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.rollouts.collection import CollectionStatistics, Collector
from skillpress.rollouts.workers.distributed import Ranks, settle
from skillpress.rollouts.workers.ranks import Report
from skillpress.skills.library.advice import SkillAdvice
from skillpress.skills.library.library import FILE, read_library


def play_rank(job: CollectionJob, rank: int, size: int, report: Report) -> CollectionStatistics:
    """Play as one of ``size`` ranks; reports the number of additional finished episodes."""
    ranks = Ranks(rank, size)
    settle(ranks)
    return play_share(job, partial(_collector, job, Experiment(job.params), ranks), rank, size, report)


@contextmanager
def _collector(job: CollectionJob, experiment: Experiment, ranks: Ranks, play: Play) -> Iterator[Collector]:
    with (
        closing(_agent(job, play, experiment, ranks)) as agent,
        experiment.collector(agent, sharing=ranks.size, library=_advice(play, experiment)) as collector,
    ):
        yield collector


def _advice(play: Play, experiment: Experiment) -> SkillAdvice | None:
    """Advice from the library in the policy's folder; None if the policy has no library."""
    file = None if play.policy is None else play.policy / FILE
    if experiment.params.skills.library is None or file is None or not file.is_file():
        return None
    skills = read_library(file).skills
    return experiment.advice(lambda version: skills)


def _agent(job: CollectionJob, play: Play, experiment: Experiment, ranks: Ranks) -> Agent:
    """The playing agent. It is loaded when its turn comes, so that only one model is in memory."""
    if play.policy is None:
        return experiment.explorer()
    policy = load_pretrained(str(play.policy), job.params.policy.dtype)
    use_attention(policy.model, for_sampling(job.params.policy.attention))
    torch.nn.Module.to(policy.model, ranks.device)
    sampling = experiment.training_sampling if job.sampling == "training" else experiment.evaluation_sampling
    return experiment.agent(policy, experiment.engine(policy), sampling)
