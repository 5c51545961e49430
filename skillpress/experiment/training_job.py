"""One rank of a training run: it builds its parts once and passes them to the loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch

from skillpress.core.engine import Engine
from skillpress.core.tables import write_table
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.core.waiting import waiting
from skillpress.experiment.adapter import insert_adapter
from skillpress.experiment.described_actions import action_metrics
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.experiment.training import TrainingJob
from skillpress.models.policy import Policy, load_policy
from skillpress.models.policy.attention import use_attention
from skillpress.models.policy.lora import LoraAdapter, SavedAdapter
from skillpress.rollouts.collection import Collector
from skillpress.rollouts.workers.distributed import Ranks, join_ranks
from skillpress.rollouts.workers.ranks import Report
from skillpress.skills.history import write_history
from skillpress.skills.library.library import SkillLibrary, write_library
from skillpress.skills.start import load_start
from skillpress.training.experience.experience import Experience, Setting
from skillpress.training.loop.ahead import Rollouts, RolloutSource
from skillpress.training.loop.continuing import ContinuingRollouts
from skillpress.training.loop.describing.episode_sample import EpisodeSample, sampled_steps
from skillpress.training.loop.describing.probes import KIND, TRAIN, UNSEEN, Probe, frame_of, probed_tasks
from skillpress.training.loop.groups import GroupCollector
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.lessons import Lessons
from skillpress.training.loop.library_evolution import LibraryEvolution
from skillpress.training.loop.loop import TrainingLoop
from skillpress.training.loop.mismatch import MismatchCheck
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.reference import Reference
from skillpress.training.loop.replay import ReplayBuffer
from skillpress.training.loop.reward_shaping import RewardShaper
from skillpress.training.loop.state_values import StateValues
from skillpress.training.loop.step import TrainingStep
from skillpress.training.loop.update import UpdatePart
from skillpress.training.loop.value_head import ValueHead

ACCOUNT_CHARACTERS = 2
"""Characters of an earlier attempt's account per token of a prompt's budget; this is about half a prompt."""


def train_rank(job: TrainingJob, ranks: Ranks, port: int | None, report: Report) -> list[dict[str, float]]:
    """Train as one of the ranks, which meet at ``port`` (None: where their launcher says); rank 0 reports
    (step, metrics).

    Returns:
        The training curve, including rows before a resumption.
    """
    params, section, experiment = job.params, job.params.training, Experiment(job.params)
    join_ranks(ranks, port, section.timeout)
    with waiting("loading the policy"):
        policy = load_policy(job.start, params.policy.dtype)
    use_attention(policy.model, params.policy.attention)
    torch.nn.Module.to(policy.model, ranks.device)
    engine = experiment.engine(policy, ranks)  # it takes the whole policy, before an adapter is inserted
    further = experience(params, policy)
    adapter = _adapter(experiment, policy, job.start)
    with waiting("starting DeepSpeed, which may compile its optimizer"):
        learner = _learner(params, policy, ranks, adapter, further)
    tasks, evolution = read_tasks(job.tasks), _evolution(job, experiment, ranks)
    advice = None if evolution is None else experiment.advice(evolution.at)
    reflection = None if further is None else further.reflection
    agent = experiment.agent(policy, engine, experiment.training_sampling, reflection)
    with (
        closing(agent),
        experiment.collector(agent, sharing=ranks.neighbours, library=advice) as collector,
        _rollouts(_groups(experiment, tasks, collector, ranks, further), engine, section.lag) as rollouts,
    ):
        step = TrainingStep(
            seed=params.seed,
            minibatches=section.minibatches,
            minibatch_size=section.minibatch_size,
            algorithm=params.algorithm,
            rollouts=rollouts,
            shaper=_shaper(experiment, ranks),
            learner=learner,
            mismatch=MismatchCheck(ranks, section.mismatch_limit, engine.promises.exact_logprobs),
            engine=engine,
            ranks=ranks,
            actions=action_metrics(
                experiment, policy, tasks, learner.engine.zero_optimization_stage() < 3, ranks
            ),
            sample=EpisodeSample(job.checkpoints, sampled_steps(section.steps), ranks),
            experience=further,
            replay=_replay(job, tasks, ranks),
            evolution=evolution,
            lag=section.lag,
        )
        if job.beginning is not None:
            load_start(job.beginning, step.shaper.corpus, step.history)
        probe = _probe(job, experiment, tasks, collector, ranks)
        loop = TrainingLoop(
            step=step,
            policy=policy,
            checkpoints=job.checkpoints,
            validation=read_tasks(job.validation),
            steps=section.steps,
            checkpoint_every=section.checkpoint_every,
            keep=section.keep,
            lag=section.lag,
            probe=probe,
        )
        curve = loop.run(job.output, lambda number, metrics: report((number, metrics)))
        if ranks.rank == 0:
            _leave(job, step, probe)
        ranks.barrier()
        return curve


def _leave(job: TrainingJob, step: TrainingStep, probe: Probe | None) -> None:
    """Write a training's other outputs, one file of each kind, empty if there is nothing to write."""
    write_history(job.history, step.history.steps)
    write_library(job.library, step.evolution.library if step.evolution else SkillLibrary())
    step.sample.write(job.episodes)
    if probe is None:
        write_table(job.probes, frame_of([]), KIND)
    else:
        probe.write(job.probes)


def _adapter(experiment: Experiment, policy: Policy, start: Path) -> LoraAdapter | None:
    """The adapter that is trained in place of the policy's weights, which it is inserted into; None if all
    weights are trained. It continues from an adapter in the folder ``start``."""
    section = experiment.params.training.lora
    if section is None:
        return None
    imitated = SavedAdapter.beside(start)
    if imitated is not None:  # the folder's weights have its changes already
        policy.model.load_state_dict(experiment.starting_policy().model.state_dict())
    return insert_adapter(experiment, policy, section, imitated)


def _learner(
    params: Params,
    policy: Policy,
    ranks: Ranks,
    adapter: LoraAdapter | None,
    further: Experience | None,
) -> Learner:
    """The learner of the policy, or of the adapter in it."""
    section = params.training
    return Learner(
        model=policy.model,
        parts=_parts(params, policy, adapter, further),
        optimizer=AdamW(
            learning_rate=section.learning_rate,
            weight_decay=section.weight_decay,
            betas=(section.betas[0], section.betas[1]),
            gradient_clipping=section.gradient_clipping,
            warmup_steps=section.warmup_steps,
            configuration=section.deepspeed,
        ),
        passing=Passing(
            temperature=params.sampling.temperature,
            token_limit=section.microbatch_tokens,
            gradient_checkpointing=section.gradient_checkpointing,
            compile=section.compile,
        ),
        ranks=ranks,
        adapter=adapter,
    )


def _parts(
    params: Params, policy: Policy, adapter: LoraAdapter | None, further: Experience | None
) -> list[UpdatePart]:
    """The parts of an update: losses, and the columns that they need."""
    algorithm, model = params.algorithm, policy.model
    parts: list[UpdatePart] = [PolicyLoss(algorithm)]
    if algorithm.kl_coefficient:
        parts.append(Reference(model, adapter, params.engine.sleeps))
    if algorithm.needs_values:
        head = ValueHead(model, params.environment.max_steps, algorithm.head_rate)
        parts.append(StateValues(algorithm, head))
    if further is not None:
        parts.append(Lessons(params.experience, model.config.get_text_config().vocab_size))
    return parts


def _groups(
    experiment: Experiment,
    tasks: Sequence[Task],
    collector: Collector,
    ranks: Ranks,
    further: Experience | None,
) -> GroupCollector:
    """The collector that plays a step's groups."""
    params = experiment.params
    return GroupCollector(
        tasks=tasks,
        collector=collector,
        algorithm=params.algorithm,
        groups=params.training.tasks_per_step,
        size=params.training.rollouts_per_task,
        core_maximum=params.reward.success,
        longest_response=params.sampling.max_new_tokens,
        seed=params.seed,
        ranks=ranks,
        side_calls=params.training.side_calls,
        experience=further,
    )


def _rollouts(groups: GroupCollector, engine: Engine, lag: int) -> RolloutSource:
    """The part that plays the groups, up to ``lag`` steps ahead."""
    if lag and engine.promises.continues:
        return ContinuingRollouts(groups, engine, lag)
    return Rollouts(groups, engine)


def _shaper(experiment: Experiment, ranks: Ranks) -> RewardShaper:
    """The part that fits the dictionary and shapes rewards."""
    params = experiment.params
    return RewardShaper(
        projection=params.environment.make_projection(),
        skills=params.skills,
        reward=params.reward,
        max_steps=params.environment.max_steps,
        ranks=ranks,
        seed=params.seed,
    )


def _probe(
    job: TrainingJob, experiment: Experiment, tasks: Sequence[Task], collector: Collector, ranks: Ranks
) -> Probe | None:
    """The probe of the policy every few steps; None without ``training.probe``."""
    params, section = job.params, job.params.training.probe
    if section is None:
        return None
    splits = {TRAIN: tasks, **({UNSEEN: read_tasks(job.unseen)} if job.unseen.exists() else {})}
    return Probe(
        tasks={
            split: probed_tasks(all_tasks, section.tasks, params.seed, split)
            for split, all_tasks in splits.items()
        },
        every=section.every,
        last=params.training.steps,
        collector=collector,
        projection=params.environment.make_projection(),
        skills=params.skills,
        max_steps=params.environment.max_steps,
        seed=params.seed,
        ranks=ranks,
        store=job.checkpoints,
    )


def _replay(job: TrainingJob, tasks: Sequence[Task], ranks: Ranks) -> ReplayBuffer | None:
    """The buffer of groups to learn from again; None without ``training.replay``."""
    section = job.params.training.replay
    if section is None:
        return None
    return ReplayBuffer(
        store=job.checkpoints.of_rank(ranks.rank),
        tasks={task.task_id: task for task in tasks},
        groups=section.groups,
        staleness=section.staleness,
        seed=job.params.seed,
        ranks=ranks,
    )


def _evolution(job: TrainingJob, experiment: Experiment, ranks: Ranks) -> LibraryEvolution | None:
    """The evolution of the skill library; None if the experiment has none."""
    section = job.params.skills.library
    if section is None:
        return None
    teacher = section.teacher
    return LibraryEvolution(
        every=section.every,
        most=section.new,
        projection=job.params.environment.make_projection(),
        ranks=ranks,
        teacher=None if teacher is None else teacher.make(job.params.seed, job.checkpoints.folder),
        library=section.beginning(),
    )


def experience(params: Params, policy: Policy) -> Experience | None:
    """The method of further attempts; None if the experiment has no such method."""
    section = params.policy
    return params.experience.make(
        Setting(
            seed=params.seed,
            decode=policy.decode,
            vocabulary=policy.words,
            words=section.knowledge_words if section.compact else None,
            characters=ACCOUNT_CHARACTERS * section.context_tokens,
        )
    )
