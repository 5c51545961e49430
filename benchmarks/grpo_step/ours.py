"""Our side: the local engine samples, DeepSpeed updates (ZeRO 1, one process)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.grpo_step.setting import (
    GROUP,
    LEARNING_RATE,
    RESPONSE,
    Place,
    Setting,
    Timed,
    make_prompts,
    reward,
)
from skillpress.core.engine import Completion, Sampling
from skillpress.core.trajectory import RewardPart, Step, Trajectory
from skillpress.experiment.estimate import memory_by_phase, training_memory
from skillpress.experiment.params import load_params
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy, load_policy
from skillpress.pipeline.reproduce.dry_run import shape_of
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch, batch_of, one_process
from skillpress.training.algorithms.grpo import GRPO
from skillpress.training.algorithms.selections.none import NoSelection
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.optimizer import AdamW, read_configuration
from skillpress.training.loop.policy_loss import PolicyLoss


class Ours:
    """Samples a step's completions and makes one optimizer step on them."""

    def __init__(self, policy: Policy, setting: Setting, place: Place) -> None:
        self.setting, self.place, self.policy = setting, place, policy
        self.steps = 0
        self.update_seconds: list[float] = []
        """Seconds of each step without sampling and rewards."""
        ranks = Ranks()
        join_ranks(ranks, free_port())
        torch.nn.Module.to(policy.model, place.device)
        self.engine = LocalEngine(policy)
        # exactly RESPONSE tokens, as TRL's side
        self.engine.stop = np.array([], np.int64)
        self.grpo = make_grpo()
        optimizer = AdamW(LEARNING_RATE, configuration=place.configuration)
        parts, passing = [PolicyLoss(self.grpo)], Passing(1.0, 1 << 20)
        self.learner = Learner(policy.model, parts, optimizer, passing, ranks)

    def step(self) -> None:
        """Sample, judge, update."""
        self.steps += 1
        prompts = [
            ids for ids in self.policy.encode(make_prompts(self.setting, self.steps)) for _ in range(GROUP)
        ]
        seeds = [self.steps * 1000 + row for row in range(len(prompts))]
        completions = self.engine.generate(prompts, Sampling(max_new_tokens=RESPONSE), seeds)
        rewards = [reward(list(completion.token_ids)) for completion in completions]
        self.engine.sleep()  # as in training
        started = self.place.now()
        episodes = make_episodes(prompts, completions, rewards)
        groups = np.repeat(np.arange(self.setting.groups), GROUP)
        advantages = self.grpo.advantages(batch_of(episodes, groups.tolist(), 1.0, RESPONSE), one_process)
        steps = tuple(step for episode in episodes for step in episode.steps)
        lengths = np.array([len(step.response_ids) for step in steps])
        assert lengths.tolist() == [RESPONSE] * len(steps)
        weights = self.grpo.token_weights(lengths, float(lengths.sum()), float(len(steps)), RESPONSE)
        self.learner.update(Batch.of_steps(steps, advantages=advantages, weights=weights))
        self.update_seconds.append(self.place.now() - started)
        self.engine.update_weights(self.learner.weights(), self.steps)


def make_grpo() -> GRPO:
    """Our equivalent of TRL's defaults: every completion trains, no KL term, one mean over all tokens."""
    return GRPO(
        name="grpo",
        scale="std",
        baseline_weighting="per_trajectory",
        discount=1.0,
        ratio="token",
        clip_low=0.2,
        clip_high=0.2,
        kl_coefficient=0.0,
        aggregation="token_mean",
        importance="none",
        importance_cap=2.0,
        select=NoSelection(name="none"),
    )


def make_episodes(
    prompts: Sequence[Sequence[int]], completions: Sequence[Completion], rewards: Sequence[float]
) -> list[Trajectory]:
    """One episode of one step per completion."""
    steps = [
        Step(
            prompt_ids=tuple(prompt),
            response_ids=completion.token_ids,
            logprobs=completion.logprobs,
            thought="",
            action="",
            observation="",
            invalid=None,
            reward_parts=(RewardPart("success", each, "trajectory"),),
        )
        for prompt, completion, each in zip(prompts, completions, rewards, strict=True)
    ]
    return [
        Trajectory(
            task_id="",
            group_id="",
            rollout_index=0,
            steps=(step,),
            won=False,
            terminated=True,
            truncated=False,
            outcome="",
            policy_version=0,
            seed=0,
        )
        for step in steps
    ]


def time_ours(setting: Setting, folder: Path, steps: int, place: Place) -> Timed:
    """Time our steps."""
    ours = Ours(load_policy(folder, place.dtype), setting, place)
    seconds = []
    for _ in range(steps):
        started = place.now()
        ours.step()
        seconds.append(place.now() - started)
    return Timed(seconds, ours.update_seconds)


def estimated_bytes(policy: Policy, setting: Setting, prompt: int, place: Place) -> dict[str, int]:
    """The estimate of ``--dry-run`` for our side, by part of a step, with all tokens in one pass. A group's
    prompt counts once.

    Args:
        prompt: tokens in the prompt.
    """
    params = load_params(Path("params.yaml"))
    changes: dict[str, dict[str, Any]] = {
        "policy": {"context_tokens": prompt, "dtype": place.dtype},
        "sampling": {"max_new_tokens": RESPONSE, "slots": setting.completions},
        "training": {"microbatch_tokens": setting.groups * (prompt + GROUP * RESPONSE)},
    }
    sections = {name: getattr(params, name).model_copy(update=keys) for name, keys in changes.items()}
    parts = training_memory(
        params.model_copy(update={"processes": 1, **sections}),
        shape_of(policy.model.config, policy.parameters),
        read_configuration(place.configuration),
    )
    return memory_by_phase(parts, params.engine.sleeps, place.device.type == "cuda")
