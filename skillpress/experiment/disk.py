"""The most disk space that an experiment's results take, and that its unfinished work takes meanwhile.

Rollouts are counted before compression: 4 bytes for a prompt's token, 8 for a sampled token (with its
log-probability), and the texts of a response and of an observation. Checkpoints of small models took 16.0
bytes a weight in float32, and in bfloat16 14.0 (ZeRO-2) and 12.0 (ZeRO-3, counted as 14).
"""

from __future__ import annotations

from skillpress.experiment.estimate import longest
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params
from skillpress.experiment.work import work
from skillpress.learn.training.describing.episode_sample import GROUPS, sampled_steps

TEXT = 2 * 6
"""Bytes of text per token of a response: six for thought and action, six for the answer to them."""
ROW = 256
"""Bytes of a step without its tokens and texts: names, numbers, the parts of its reward."""
MASTER_AND_MOMENTS = 12
"""Bytes of an optimizer's state per weight: a float32 copy and AdamW's two moments."""


def disk(params: Params, shape: ModelShape) -> dict[str, int]:
    """Bytes, part by part. DVC keeps a copy of stage outputs, but not of checkpoints."""
    dtype = 2 if params.policy.dtype == "bfloat16" else 4
    model, training = dtype * shape.parameters, params.training
    trained = shape.parameters if training.lora is None else shape.adapter(training.lora.rank)
    checkpoint = (dtype + MASTER_AND_MOMENTS) * trained
    imitated = params.imitation.wanted
    episodes = work(params)
    played = sum(
        episodes[part].environment_steps
        for part in ("collect_rollouts", "play_floors: explorer", "play_floors: start", "evaluate_policy")
    )
    sample = len(sampled_steps(training.steps)) * GROUPS * training.rollouts_per_task
    step, longest_episode = step_bytes(params, shape), params.environment.max_steps
    rollouts = (played + sample * longest_episode) * step
    replay, group = training.replay, training.rollouts_per_task * longest_episode
    replayable = 0 if replay is None else (replay.staleness + 1) * training.tasks_per_step * group
    left = {
        "models: start and trained policy": 2 * model,
        "rollouts": rollouts,
        "DVC's copies of both": 2 * model + rollouts,
    }
    meanwhile = {
        "checkpoints: two while one replaces the other": 2 * checkpoint if training.steps else 0,
        "checkpoints: the best policy": model if training.steps and training.keep == "best" else 0,
        "imitation's state, twice": 2 * MASTER_AND_MOMENTS * shape.parameters if imitated else 0,
        "checkpoints: episodes to learn from again": replayable * step,
        "episodes that are not written out yet": rollouts,
    }
    return {part: size for part, size in {**left, **meanwhile}.items() if size}


def step_bytes(params: Params, shape: ModelShape) -> int:
    """Bytes of one step in a file of rollouts, before compression."""
    return ROW + 4 * longest(params, shape) + (4 + TEXT) * params.sampling.max_new_tokens
