"""One rank of an imitation: it demonstrates a block of tasks, then learns from all demonstrations.

Each rank makes one block of demonstrations. They are read back in order, so the samples do not depend on the
number of ranks. The ranks then divide every update's batch.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from skillpress.core.errors import ParamsError
from skillpress.core.resume import SaveTimer
from skillpress.core.task_files import read_tasks
from skillpress.experiment.adapter import insert_adapter
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.imitation import ImitationJob, ImitationProgress, ImitationResult
from skillpress.models.policy import Policy, save_policy
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.scorers import checkpoint_layers
from skillpress.rollouts.workers.distributed import Ranks, join_ranks
from skillpress.rollouts.workers.pool import cores
from skillpress.rollouts.workers.ranks import Report
from skillpress.training.imitation.dataset import demonstrated, samples_file
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.imitation.episodes import Counts, EpisodeSamples
from skillpress.training.imitation.optimizers import Schedule
from skillpress.training.imitation.samples import Samples
from skillpress.training.imitation.thoughts import read_thoughts, tokenize_thoughts
from skillpress.training.imitation.trainer import imitate

REPORT_SECONDS = 0.5
"""Seconds between two reports of demonstrations; Countdown's oracle makes a thousand per second."""


def imitate_rank(job: ImitationJob, port: int, rank: int, size: int, report: Report) -> ImitationResult:
    """Imitate as one of ``size`` ranks that meet at ``port``; rank 0 writes the policy."""
    ranks = Ranks(rank, size)
    if size > 1:
        join_ranks(ranks, port)
    experiment, section = Experiment(job.params), job.params.imitation
    policy = experiment.starting_policy()
    parameters = policy.parameters
    if job.params.training.gradient_checkpointing:
        checkpoint_layers(policy.model)
    torch.nn.Module.to(policy.model, ranks.device)
    adapter = None if section.lora is None else insert_adapter(experiment, policy, section.lora)
    thoughts = _thoughts(job, policy, rank)
    recorded, counts = _recorded(job, policy, rank)
    samples = Samples.joined([*_demonstrated(job, policy, ranks, report), *thoughts, *recorded])
    if not samples:
        raise ParamsError(
            f"imitation.demonstrations: no prompt of {job.params.imitation.demonstrations} demonstrations "
            f"fits into policy.context_tokens ({job.params.policy.context_tokens}); raise it"
        )
    losses = imitate(
        policy,
        samples,
        section,
        job.params.seed,
        on_update=lambda done, total, loss: report(ImitationProgress(done, total, loss)),
        checkpoint=job.store.folder / "imitation.pt",
        ranks=ranks,
        token_limit=job.params.training.microbatch_tokens,
    )
    if rank == 0:
        _save(policy, adapter, job)
    peak = Schedule.of(section, len(losses)).peak
    return ImitationResult(
        losses,
        parameters,
        thoughts=sum(map(len, thoughts)),
        episodes=counts,
        peak_rate=peak * section.learning_rate,
    )


def _save(policy: Policy, adapter: LoraAdapter | None, job: ImitationJob) -> None:
    """Write a complete model; beside it the adapter, if training goes on with it."""
    if adapter is None or job.params.imitation.lora is None:
        return save_policy(policy, job.output)
    weights = adapter.merged(torch.Tensor.detach)
    goes_on = job.params.imitation.lora.then == "continue"
    save_policy(policy, job.output, weights, adapter.saved(torch.Tensor.detach) if goes_on else None)


def _thoughts(job: ImitationJob, policy: Policy, rank: int) -> list[Samples]:
    """The samples of reverse parsing, in order; empty without ``imitation.thoughts``."""
    params, experiment = job.params, Experiment(job.params)
    if params.imitation.thoughts is None:
        return []
    pairs = read_thoughts(params.imitation.thoughts, params.environment.name, params.policy.rendering)
    budget = experiment.prompter(policy).budget
    samples = tokenize_thoughts(pairs, policy, budget, params.sampling.max_new_tokens)
    return [Samples.written(_file(job, "thoughts", rank), samples)]


def _recorded(job: ImitationJob, policy: Policy, rank: int) -> tuple[list[Samples], Counts | None]:
    """The samples of recorded episodes, in order, and what became of them; none without
    ``imitation.episodes``."""
    params, experiment = job.params, Experiment(job.params)
    if job.episodes is None:
        return [], None
    found = EpisodeSamples(
        policy,
        budget=experiment.prompter(policy).budget,
        longest_response=params.sampling.max_new_tokens,
        read=params.environment.make_reader() if params.environment.offers("make_reader") else None,
    )
    return [found.of(job.episodes, _file(job, "recorded", rank))], found.counts


def _file(job: ImitationJob, kind: str, rank: int) -> Path:
    """A file of this rank's samples: ranks do not write the same one."""
    return job.store.of_rank(rank).folder / f"{kind}.arrow"


def _demonstrated(job: ImitationJob, policy: Policy, ranks: Ranks, report: Report) -> list[Samples]:
    """The samples of all demonstrations, in order; this rank makes one block of them."""
    count = job.params.imitation.demonstrations
    if not count:
        return []
    edges = [count * rank // ranks.size for rank in range(ranks.size + 1)]
    own = _block(job, policy, block=ranks.rank, edges=edges, size=ranks.size, report=report)
    ranks.barrier()
    return [
        own if rank == ranks.rank else Samples.read(samples_file(job.store.of_rank(rank)))
        for rank in range(ranks.size)
    ]


def _block(
    job: ImitationJob, policy: Policy, block: int, edges: list[int], size: int, report: Report
) -> Samples:
    """This rank's samples: read if they exist, otherwise made."""
    experiment, section = Experiment(job.params), job.params.imitation
    start, end = edges[block], edges[block + 1]
    show = partial(
        demonstrate,
        tasks=read_tasks(job.tasks),
        count=end,
        section=job.params.environment,
        rendering=experiment.rendering,
        update_state=experiment.state_update,
        detour_rate=section.detour_rate,
        seed=job.params.seed,
        processes=max(1, cores() // size),
    )
    often = SaveTimer(REPORT_SECONDS)

    def on_demonstration(done: int) -> None:
        if done == end - start or often():
            report(ImitationProgress(done, section.demonstrations))

    return demonstrated(
        demonstrate=lambda done: show(first=start + done),
        count=end - start,
        prompter=experiment.prompter(policy),
        policy=policy,
        store=job.store.of_rank(block),
        on_demonstration=on_demonstration,
        grows=experiment.state_update.grows,
    )
