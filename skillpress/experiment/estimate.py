"""How large an experiment is before it is run: work, and memory of one training process.

Everything is an upper bound from the parameters alone: every episode lasts T steps, every prompt fills
its budget, every response its length. Memory counts what grows with the model and the batch:

    learner    weights and gradients in its type, in bfloat16 a float32 copy of both beside them, and
               AdamW's two float32 moments; ZeRO stages 1, 2 and 3 share moments and float32 weights,
               then gradients, then weights among the processes
    engine     its own copy of the weights, whole whatever the ZeRO stage; keys and values of the rows
               decoded at once, whose memory is bounded; where prompts grow, as much again for those that
               wait for the next step's prompts. On a GPU the local engine rounds rows and columns up and
               holds prefilled prompts beside them, within the same bound: where rows are few or short it
               takes more than is said here, and CUDA's graphs are not counted. vLLM's cache has its full
               size from the start, and a GPU has it and the weights back while the learner updates; vLLM's
               own work space is not counted. Servers have memory of their own, of which nothing is counted
    values     where the algorithm asks for them, a head of one weight per hidden unit and a bias: part of the
               learner's, and next to nothing. Asking it before the updates keeps nothing for a way back
    reference  a copy of the weights, where there is a KL term, whole at every stage too; on the CPU but
               for the pass in which it scores a step's samples, which keeps nothing for a way back
    handover   under ZeRO-3 the whole weights once more, gathered for the engine
    LoRA       gradients, float32 copy and moments of the low-rank changes alone; no reference, since the
               learner without its changes is one; and at the handover the weights of all linear layers once
               more, with the changes in them
    batch      what a pass keeps for its way back, attention matrices not among it: per token and layer
               two norms in float32, the residuals, queries, keys, values and four times the
               feed-forward width, and as much again for one layer's gradients; a shared prompt's keys
               and values, fanned out to its responses (repeated for every head where heads share them),
               and the mask over them; logits: for each response token of a chunk its vocabulary in
               float32, four times (logits, log-softmax, and two for the entropy), once more in bfloat16
               models, under a soft cap, and where there are several chunks; and a gradient of the output
               embeddings, before it is added up, which several chunks sum in float32. With gradient
               checkpointing every layer keeps its input alone, but for the one being computed again; no
               prompt is shared then, and the mask is as wide as the longest sequence. Lessons that compare
               distributions (``experience``) hold two whole ones for a chunk of tokens

``tests/skillpress/experiment/test_estimate.py`` holds the batch's part to the peak of real passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillpress.interface import StateUpdate
from skillpress.params import Params
from skillpress.policy.passes import FAN_OUT
from skillpress.policy.token_scores import CHUNK_LOGITS
from skillpress.registry import STATE_UPDATES, lookup
from skillpress.training.value_head import WAVES

LOGIT_COPIES = 4
LESSON_COPIES = 8
"""Of a chunk's distributions, where lessons compare two: logits and log-softmax of both, what the KL is the
sum of, and gradients."""


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

    @property
    def linear_layers(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of the linear layers of one layer of the transformer; some families have fewer."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = (self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden)
        inner = self.hidden, self.intermediate
        return (*attention, inner, inner, (self.intermediate, self.hidden))


KNOWN_SHAPES = {
    "Qwen/Qwen2.5-1.5B-Instruct": ModelShape(
        parameters=1_543_714_304,
        layers=28,
        hidden=1536,
        kv_heads=2,
        head_size=128,
        vocabulary=151_936,
        heads=12,
        intermediate=8960,
    ),
    "Qwen/Qwen2.5-7B-Instruct": ModelShape(
        parameters=7_615_616_512,
        layers=28,
        hidden=3584,
        kv_heads=4,
        head_size=128,
        vocabulary=152_064,
        heads=28,
        intermediate=18_944,
    ),
    "Qwen/Qwen3-1.7B": ModelShape(
        parameters=1_720_574_976,
        layers=28,
        hidden=2048,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        heads=16,
        intermediate=6144,
    ),
    "smollm2-135m": ModelShape(
        parameters=134_515_008,
        layers=30,
        hidden=576,
        kv_heads=3,
        head_size=64,
        vocabulary=49_152,
        heads=9,
        intermediate=1536,
    ),
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
    tried_again = min(params.experience.most_per_group, training.rollouts_per_task)
    group = training.rollouts_per_task + tried_again
    episodes = most_played * training.steps * training.tasks_per_step * group
    validations = -(-training.steps // training.checkpoint_every) if training.keep == "best" else 0
    probe, splits = training.probe, 2 if params.tasks.unseen else 1
    probes = len({*range(0, training.steps, probe.every), training.steps}) if probe is not None else 0
    probed = probes * splits * probe.tasks if probe is not None else 0
    return {
        "collect_rollouts": _work(params, params.rollouts.tasks * params.rollouts.per_task),
        "train_policy": _work(params, episodes),
        "train_policy: validation": _work(params, validations * params.tasks.validation),
        "train_policy: probes": _work(params, probed),
        "play_floors: explorer": Work(evaluated, evaluated * params.environment.max_steps, 0, 0),
        "play_floors: start": _work(params, evaluated),
        "evaluate_policy": _work(params, evaluated),
    }


def replayed(params: Params) -> Work:
    """What training learns from once more; nobody samples it or acts again."""
    training = params.training
    if training.replay is None:
        return Work(episodes=0, environment_steps=0, prompt_tokens=0, sampled_tokens=0)
    groups = max(training.steps - 1, 0) * training.replay.groups
    return _work(params, groups * training.rollouts_per_task)


def _work(params: Params, episodes: int) -> Work:
    steps = episodes * params.environment.max_steps
    return Work(episodes, steps, steps * params.policy.context_tokens, steps * params.sampling.max_new_tokens)


def training_memory(params: Params, shape: ModelShape, deepspeed: dict[str, Any]) -> dict[str, int]:
    """Bytes of one training process, part by part; :func:`memory_by_phase` says which are there together.

    Args:
        deepspeed: the experiment's DeepSpeed configuration.
    """
    half = bool(deepspeed.get("bf16", {}).get("enabled"))
    accumulated = 4 if half and deepspeed.get("data_types", {}).get("grad_accum_dtype") == "fp32" else 0
    stage = int(deepspeed.get("zero_optimization", {}).get("stage", 0))
    learning = 2 if half else 4
    sampling = 2 if params.policy.dtype == "bfloat16" else 4
    processes = params.processes

    def shared(size: int, from_stage: int) -> int:
        return -(-size // processes) if stage >= from_stage else size

    count, lora = shape.parameters, params.training.lora
    changes = 0 if lora is None else lora.rank * shape.layers * sum(i + o for i, o in shape.linear_layers)
    head = shape.hidden + 1 + WAVES if params.algorithm.needs_values else 0
    trained = (count if lora is None else changes) + head
    merged = 0 if lora is None else shape.layers * sum(i * o for i, o in shape.linear_layers)
    length = params.policy.context_tokens + params.sampling.max_new_tokens
    row = length * 2 * shape.layers * shape.kv_heads * shape.head_size * sampling
    engine = params.engine.memory(sampling * count, params.sampling.slots, row, _grows(params))
    batch = _batch_memory(params, shape, learning)
    kept = batch["batch: activations"] * shape.layers // (shape.layers + 1)
    compared = bool(params.algorithm.kl_coefficient)
    return {
        "learner: weights": shared(learning * (count + changes + head), 3),
        "learner: gradients": shared((learning + accumulated) * trained, 2),
        "learner: float32 copy": shared(4 * trained, 1) if half else 0,
        "learner: AdamW moments": shared(8 * trained, 1),
        "engine: weights": engine.weights,
        "engine: keys and values": engine.cache,
        "engine: keys and values kept": engine.kept,
        "reference: weights": learning * count if compared and lora is None else 0,
        "reference: one pass": sum(batch.values()) - kept if compared else 0,
        "handover: gathered weights": learning * count if stage == 3 else 0,
        "handover: merged weights": learning * merged if stage < 3 else 0,
        **batch,
    }


PHASES = {
    "sampling": ("engine: ",),
    "scoring by the reference": ("reference: weights", "reference: one pass"),
    "updating": ("batch: ",),
    "handing weights to the engine": ("engine: weights", "handover: "),
}
"""Part of a training step to what it needs beside what is there all the time."""


def memory_by_phase(
    parts: Mapping[str, int], sleeps: bool, on_gpu: bool, beside: bool = False
) -> dict[str, int]:
    """Bytes that are there together in each part of a training step, at most.

    Args:
        parts: what :func:`training_memory` found.
        sleeps: whether the engine holds its memory all the time, but for a GPU's (``EngineParameters``).
        on_gpu: whether this is a GPU's memory; the reference's weights are elsewhere then while it does not
            score.
        beside: whether the engine samples beside all the rest (``training.lag`` 1).
    """
    always = ["learner: "]
    if not on_gpu:
        always.append("reference: weights")
    if beside or (sleeps and not on_gpu):
        always.append("engine: ")
    elif not sleeps:
        always.append("engine: weights")
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
    lora = params.training.lora
    if lora is not None:  # A x of every linear layer, and its output apart from the change of it
        kept += size * sum(lora.rank + output for _, output in shape.linear_layers)
    half = size if size < 4 else 0
    chunk = max(1, CHUNK_LOGITS // shape.vocabulary)
    several = tokens > chunk
    logits = 4 * (LOGIT_COPIES + shape.soft_cap + several) + half
    head = 0 if lora is not None else shape.hidden * (4 + half if several else size)
    passed = _checkpointed if params.training.gradient_checkpointing else _kept
    parts = {
        **passed(params, shape, size, kept),
        "batch: logits": shape.vocabulary * (min(tokens, chunk) * logits + head),
    }
    if params.experience.compares_distributions:
        parts["batch: lessons' distributions"] = 4 * LESSON_COPIES * shape.vocabulary * min(tokens, chunk)
    return parts


def _kept(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Where every layer keeps its activations, ``kept`` bytes per token, and prompts are shared."""
    limit, response = params.training.microbatch_tokens, params.sampling.max_new_tokens
    length = params.policy.context_tokens + response
    repeated = shape.heads if shape.heads > shape.kv_heads else 0
    # Three more of one layer: what is being selected, joined, and given back by the gradient.
    copies = shape.layers * (shape.kv_heads + repeated) + 3 * shape.heads
    grows = _grows(params)
    fanned_out = max(FAN_OUT * limit, length) if response > 1 or grows else 0
    # As wide as a prompt and its response; as high as the response, or where prompts grow as an episode.
    mask = (max(limit, length) * length if grows else fanned_out * (response - 1)) * (1 + size)
    return {
        "batch: activations": max(limit, length) * (shape.layers + 1) * kept,
        "batch: keys and values fanned out": fanned_out * 2 * shape.head_size * copies * size + mask,
    }


def _grows(params: Params) -> bool:
    """Whether a step's prompt goes on from the one before."""
    update: StateUpdate = lookup(STATE_UPDATES, params.policy.state_update, "policy.state_update")(0)
    return update.grows


def _checkpointed(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Where every layer keeps its input, and one at a time all else."""
    length = params.policy.context_tokens + params.sampling.max_new_tokens
    tokens = max(params.training.microbatch_tokens, length)
    keys_and_values = 2 * shape.head_size * (shape.kv_heads + 4 * shape.heads) * size
    return {
        "batch: activations": tokens * (shape.layers * shape.hidden * size + 2 * kept + keys_and_values),
        "batch: attention mask": tokens * length * (1 + size),
    }
