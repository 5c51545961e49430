"""How large an experiment is before it is run: work, and memory of one training process.

Everything is an upper bound from the parameters alone: every episode lasts T steps, every prompt fills
its budget, every response its length. Memory counts what grows with the model and the batch:

    learner    weights and gradients in its type, in bfloat16 a float32 copy of both beside them, and
               AdamW's two float32 moments; ZeRO stages 1, 2 and 3 share moments and float32 weights,
               then gradients, then weights among the processes
    engine     its own copy of the weights, whole whatever the ZeRO stage; keys and values of the rows
               decoded at once, whose memory is bounded
    reference  a copy of the weights, where there is a KL term, whole at every stage too; on the CPU but
               for the pass in which it scores a step's samples, which keeps nothing for a way back
    handover   under ZeRO-3 the whole weights once more, gathered for the engine
    batch      what a pass keeps for its way back, attention matrices not among it: per token and layer
               two norms in float32, the residuals, queries, keys, values and four times the
               feed-forward width, and as much again for one layer's gradients; a shared prompt's keys
               and values, fanned out to its responses (repeated for every head where heads share them),
               and the mask over them; logits: for each response token of a chunk its vocabulary in
               float32, four times (logits, log-softmax, and two for the entropy), once more in bfloat16
               models, under a soft cap, and where there are several chunks; and a gradient of the output
               embeddings, before it is added up, which several chunks sum in float32. With gradient
               checkpointing every layer keeps its input alone, but for the one being computed again; no
               prompt is shared then, and the mask is as wide as the longest sequence

``tests/skillpress/training/test_footprint.py`` holds the batch's part to the peak of real passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillpress.params import Params
from skillpress.policy.token_scores import CHUNK_LOGITS
from skillpress.training.samples import FAN_OUT

LOGIT_COPIES = 4


@dataclass(frozen=True)
class ModelShape:
    """What of a transformer decides its memory."""

    parameters: int
    """Tied embeddings counted once."""
    layers: int
    hidden: int
    kv_heads: int
    head_size: int
    vocabulary: int
    heads: int
    intermediate: int
    """Width of the feed-forward layers."""
    soft_cap: bool = False
    """Whether logits are capped, which keeps one more copy of them."""


KNOWN_SHAPES = {
    "Qwen/Qwen2.5-1.5B-Instruct": ModelShape(1_543_714_304, 28, 1536, 2, 128, 151_936, 12, 8960),
    "Qwen/Qwen3-1.7B": ModelShape(1_720_574_976, 28, 2048, 8, 128, 151_936, 16, 6144),
    "smollm2-135m": ModelShape(134_515_008, 30, 576, 3, 64, 49_152, 9, 1536),
}
"""Models that experiments name, for when their configuration is not at hand."""


@dataclass(frozen=True)
class Work:
    """What one part of an experiment asks for at most."""

    episodes: int
    environment_steps: int
    prompt_tokens: int
    sampled_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens that pass through the model."""
        return self.prompt_tokens + self.sampled_tokens


def work(params: Params) -> dict[str, Work]:
    """Part of the experiment to its work; the explorer's episodes have no tokens."""
    evaluated = params.evaluation.runs * params.evaluation.votes * params.tasks.test
    training = params.training
    most_played = 1 + params.algorithm.select.most_refills
    episodes = most_played * training.steps * training.tasks_per_step * training.rollouts_per_task
    validations = -(-training.steps // training.checkpoint_every) if training.keep == "best" else 0
    return {
        "collect_rollouts": _work(params, params.rollouts.tasks * params.rollouts.per_task),
        "train_policy": _work(params, episodes),
        "train_policy: validation": _work(params, validations * params.tasks.validation),
        "evaluate_policy: explorer": Work(evaluated, evaluated * params.environment.max_steps, 0, 0),
        "evaluate_policy: start": _work(params, evaluated),
        "evaluate_policy: trained": _work(params, evaluated),
    }


def _work(params: Params, episodes: int) -> Work:
    steps = episodes * params.environment.max_steps
    return Work(episodes, steps, steps * params.policy.context_tokens, steps * params.sampling.max_new_tokens)


def training_memory(
    params: Params, shape: ModelShape, deepspeed: dict[str, Any], cache_bytes: int
) -> dict[str, int]:
    """Bytes of one training process, part by part; :func:`memory_by_phase` says which are there together.

    Args:
        deepspeed: the experiment's DeepSpeed configuration.
        cache_bytes: what the engine's keys and values may take.
    """
    half = bool(deepspeed.get("bf16", {}).get("enabled"))
    accumulated = 4 if half and deepspeed.get("data_types", {}).get("grad_accum_dtype") == "fp32" else 0
    stage = int(deepspeed.get("zero_optimization", {}).get("stage", 0))
    learning = 2 if half else 4
    sampling = 2 if params.policy.dtype == "bfloat16" else 4
    processes = params.processes

    def shared(size: int, from_stage: int) -> int:
        return -(-size // processes) if stage >= from_stage else size

    count = shape.parameters
    length = params.policy.context_tokens + params.sampling.max_new_tokens
    row = length * 2 * shape.layers * shape.kv_heads * shape.head_size * sampling
    batch = _batch_memory(params, shape, learning)
    kept = batch["batch: activations"] * shape.layers // (shape.layers + 1)
    compared = bool(params.algorithm.kl_coefficient)
    return {
        "learner: weights": shared(learning * count, 3),
        "learner: gradients": shared((learning + accumulated) * count, 2),
        "learner: float32 copy": shared(4 * count, 1) if half else 0,
        "learner: AdamW moments": shared(8 * count, 1),
        "engine: weights": sampling * count,
        "engine: keys and values": max(row, min(params.sampling.slots * row, cache_bytes)),
        "reference: weights": learning * count if compared else 0,
        "reference: one pass": sum(batch.values()) - kept if compared else 0,
        "handover: gathered weights": learning * count if stage == 3 else 0,
        **batch,
    }


PHASES = {
    "sampling": ("engine: keys and values",),
    "scoring by the reference": ("reference: weights", "reference: one pass"),
    "updating": ("batch: ",),
    "handing weights to the engine": ("handover: ",),
}
"""Part of a training step to what it needs beside the learner's state and the engine's weights."""


def memory_by_phase(parts: Mapping[str, int], offloaded: bool) -> dict[str, int]:
    """Bytes that are there together in each part of a training step, at most.

    Args:
        parts: what :func:`training_memory` found.
        offloaded: whether the reference's weights lie elsewhere while it does not score, as they do on a
            machine with a GPU.
    """
    always = ("learner: ", "engine: weights", *(() if offloaded else ("reference: weights",)))
    return {
        phase: sum(size for part, size in parts.items() if part.startswith((*always, *own)))
        for phase, own in PHASES.items()
    }


def _batch_memory(params: Params, shape: ModelShape, size: int) -> dict[str, int]:
    """Bytes of one microbatch; ``size`` is that of a number of the learner's type."""
    response = params.sampling.max_new_tokens
    length = params.policy.context_tokens + response
    tokens = max(params.training.microbatch_tokens, length)
    attention = (shape.heads + shape.kv_heads) * shape.head_size
    kept = size * (4 * shape.hidden + 4 * attention + 4 * shape.intermediate) + 4 * 4 * shape.hidden
    half = size if size < 4 else 0
    chunk = max(1, CHUNK_LOGITS // shape.vocabulary)
    several = tokens > chunk
    logits = 4 * (LOGIT_COPIES + shape.soft_cap + several) + half
    head = shape.hidden * (4 + half if several else size)
    passed = _checkpointed if params.training.gradient_checkpointing else _kept
    return {
        **passed(params, shape, size, kept),
        "batch: logits": shape.vocabulary * (min(tokens, chunk) * logits + head),
    }


def _kept(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Where every layer keeps its activations, ``kept`` bytes per token, and prompts are shared."""
    limit, response = params.training.microbatch_tokens, params.sampling.max_new_tokens
    length = params.policy.context_tokens + response
    repeated = shape.heads if shape.heads > shape.kv_heads else 0
    # Three more of one layer: what is being selected, joined, and given back by the gradient.
    copies = shape.layers * (shape.kv_heads + repeated) + 3 * shape.heads
    fanned_out = max(FAN_OUT * limit, length) if response > 1 else 0
    mask = (response - 1) * (1 + size)
    return {
        "batch: activations": max(limit, length) * (shape.layers + 1) * kept,
        "batch: keys and values fanned out": fanned_out * (2 * shape.head_size * copies * size + mask),
    }


def _checkpointed(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Where every layer keeps its input, and one at a time all else."""
    length = params.policy.context_tokens + params.sampling.max_new_tokens
    tokens = max(params.training.microbatch_tokens, length)
    keys_and_values = 2 * shape.head_size * (shape.kv_heads + 4 * shape.heads) * size
    return {
        "batch: activations": tokens * (shape.layers * shape.hidden * size + 2 * kept + keys_and_values),
        "batch: attention mask": tokens * length * (1 + size),
    }
