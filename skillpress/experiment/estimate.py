"""Estimates how much memory a process of an experiment takes, before it runs.

Every figure is an upper bound from the parameters alone: every prompt fills its budget and every response its
length. The estimate counts everything that grows with the model and the batch:

    learner    weights and gradients in its type, in bfloat16 also a float32 copy of both, and AdamW's two
               float32 moments; ZeRO stage 1 shares moments and float32 weights among the processes, stage 2
               also gradients, stage 3 also weights. DeepSpeed copies gradients into a bucket, whose size does
               not depend on the model; stage 1 in bfloat16 has none. Stage 3 gathers the weights of several
               layers at once
    engine     its own whole copy of the weights at every ZeRO stage; keys and values of the rows decoded at
               once, whose memory is bounded; if prompts grow, the same amount for rows that wait for the next
               step's prompts. On a GPU the local engine rounds rows and columns up and also holds prefilled
               prompts, within the same bound: with few or short rows it takes more than this estimate.
               CUDA's graphs and half a GiB for its draws are not counted. vLLM's cache has its full
               size from the start; while the learner updates, the GPU's memory for it and the weights is
               free. When it wakes, torch has given back what it could of an update's memory. What it could
               not was never measured, so an update's whole memory counts beside the engine. vLLM's own work
               space is not counted. Servers have their own memory, which is not counted
    values     if the algorithm asks for them, a head of one weight per hidden unit and a bias: it is part of
               the learner and tiny. The pass that computes values before the updates keeps nothing for a
               backward pass
    reference  a copy of the weights if there is a KL term, whole at every stage too. A GPU has it while it
               scores a step's samples, or all the time if it is small (``reference_memory.py``); that pass
               keeps nothing for a backward pass
    comparing  before training the model is compared with its scorer: whole weights, not shared yet, and for
               bfloat16 a float32 copy of them
    handover   under ZeRO-3 the whole weights once more, gathered for the engine
    LoRA       gradients, float32 copy and moments of the low-rank changes and of new tokens' rows only; no
               reference, since the learner without its changes serves as one; and at the handover the weights
               of all linear layers, and of the embeddings with such rows, once more, with the changes added.
               ``policy.quantised`` holds the linear layers in 4.5 bits a weight
    batch      the memory that a pass keeps for its backward pass, without attention matrices. Per token and
               layer: two norms in float32, the residuals, queries, keys, values and four times the
               feed-forward width, and the same amount for one layer's gradients. Further: a shared prompt's
               keys and values, fanned out to its responses (repeated for every head if heads share them), and
               the mask over them. Logits: for each response token of a chunk its vocabulary in float32, four
               times (logits, log-softmax, and two for the entropy), once more each in bfloat16 models, under
               a soft cap, and with several chunks. And a gradient of the output embeddings, before it is
               added up, which several chunks sum in float32. With gradient checkpointing every layer keeps
               only its input, except the one being computed again; then no prompt is shared, and the mask is
               as wide as the longest sequence. With FlashAttention no prompt is shared and there is no mask.
               Lessons that compare distributions (``experience``) hold two
               whole distributions for a chunk of tokens

    imitation  whole weights and gradients, float32 copy and moments. Several processes share the latter two
               (at most an equal part and the largest tensor); they add gradients up in float32, in a buffer
               of their own, and send each other updated weights. On a GPU each bfloat16 gradient leaves a
               gap, too small for its float32 sum, so these gradients count twice. With ``imitation.lora`` all
               but the weights exists for the changes alone. Passes are bounded as in training

``tests/skillpress/experiment/test_estimate.py`` compares the batch's part with the peak of real passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skillpress.experiment.experiment import Experiment
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params
from skillpress.models.policy.nf4 import BLOCK
from skillpress.models.policy.passes import FAN_OUT
from skillpress.models.policy.token_scores import CHUNK_LOGITS
from skillpress.training.loop.value_head import WAVES
from skillpress.training.lora_parameters import LoraParameters

Passed = Callable[[Params, ModelShape, int, int], dict[str, int]]
"""Bytes of a pass, without logits, part by part; its last two arguments are sizes of the learner's type and
of what a token keeps in a layer."""
LOGIT_COPIES = 4
BUCKET = "learner: ZeRO's bucket"
UNUSED = "learner: ZeRO's bucket, unused"
GAPS = "imitation: gaps"
LESSONS = "batch: lessons' distributions"
LESSON_COPIES = 8
"""Copies of a chunk's distributions: logits and log-softmax of both, the KL's terms, gradients."""


def training_memory(params: Params, shape: ModelShape, deepspeed: dict[str, Any]) -> dict[str, int]:
    """Bytes of one training process, part by part; :func:`memory_by_phase` says which parts exist
    together."""
    half = bool(deepspeed.get("bf16", {}).get("enabled"))
    accumulated = 4 if half and deepspeed.get("data_types", {}).get("grad_accum_dtype") == "fp32" else 0
    stage = int(deepspeed.get("zero_optimization", {}).get("stage", 0))
    learning = 2 if half else 4
    sampling = 2 if params.policy.dtype == "bfloat16" else 4
    processes = params.processes

    def shared(size: int, from_stage: int) -> int:
        return -(-size // processes) if stage >= from_stage else size

    count, lora = shape.parameters, params.training.lora
    changes = _changes(params, shape, lora)
    head = shape.hidden + 1 + WAVES if params.algorithm.needs_values else 0
    trained = (count if lora is None else changes) + head
    merged = 0 if lora is None else shape.layers * sum(i * o for i, o in shape.linear_layers)
    merged += 2 * shape.vocabulary * shape.hidden if lora is not None and words_added(params) else 0
    row = longest(params, shape) * 2 * shape.layers * shape.kv_heads * shape.head_size * sampling
    engine = params.engine.memory(sampling * count, params.sampling.slots, row, _grows(params))
    batch = _batch_memory(params, shape, learning)
    kept = batch["batch: activations"] * shape.layers // (shape.layers + 1)
    compared, bucket = bool(params.algorithm.kl_coefficient), _bucket(deepspeed)
    waiting = 0 if params.engine.shared else max(0, params.training.lag - 1)
    return {
        "learner: weights": shared(
            _untrained(params, shape, learning) + learning * (changes * _adapters(params) + head), 3
        ),
        "learner: gradients": shared((learning + accumulated) * trained, 2),
        "learner: float32 copy": shared(4 * trained, 1) if half else 0,
        "learner: AdamW moments": shared(8 * trained, 1),
        BUCKET: learning * min(bucket, trained),
        UNUSED: learning * max(0, bucket - trained),
        "engine: weights": engine.weights,
        "engine: keys and values": engine.cache,
        "engine: keys and values kept": engine.kept,
        "lag: weights that wait": learning * count * waiting,
        "reference: weights": learning * count if compared and lora is None else 0,
        "reference: one pass": sum(batch.values()) - kept if compared else 0,
        "comparing: whole weights": sampling * count,
        "comparing: float32 copy": 4 * count if sampling == 2 else 0,
        "update: gathered weights": learning * min(count, _gathered(deepspeed)),
        "handover: gathered weights": learning * count if stage == 3 else 0,
        "handover: merged weights": learning * merged if stage < 3 else 0,
        **batch,
    }


def _bucket(deepspeed: dict[str, Any]) -> int:
    """Number of gradients in the bucket of a configuration, as the pinned DeepSpeed allocates it."""
    zero = deepspeed.get("zero_optimization", {})
    stage, half = int(zero.get("stage", 0)), bool(deepspeed.get("bf16", {}).get("enabled"))
    # Stage 1 in bfloat16 with float32 sums has an optimizer of its own, which adds gradients up in place.
    alone = half and deepspeed.get("data_types", {}).get("grad_accum_dtype") == "fp32"
    return 0 if stage == 0 or (stage == 1 and alone) else int(zero.get("reduce_bucket_size", 5e8))


def _gathered(deepspeed: dict[str, Any]) -> int:
    """The most weights that stage 3 gathers at once, those fetched ahead included; 0 at other stages."""
    zero = deepspeed.get("zero_optimization", {})
    if int(zero.get("stage", 0)) < 3:
        return 0
    ahead = int(zero.get("stage3_prefetch_bucket_size", 5e7))
    return int(zero.get("stage3_max_live_parameters", 1e9)) + ahead


def words_added(params: Params) -> int:
    """The most words that ``policy.domain_tokens`` makes into tokens; each has a row in both embeddings."""
    return len(Experiment(params).domain_words) if params.policy.domain_tokens else 0


def _changes(params: Params, shape: ModelShape, lora: LoraParameters | None) -> int:
    """Number of weights of low-rank changes and of new tokens' rows; 0 without changes."""
    return 0 if lora is None else shape.adapter(lora.rank) + 2 * words_added(params) * shape.hidden


def _adapters(params: Params) -> int:
    """Number of adapters in the learner's model: two if training continues that of imitation."""
    imitated = params.imitation.lora if params.imitation.wanted else None
    return 2 if imitated is not None and imitated.then == "continue" else 1


def _untrained(params: Params, shape: ModelShape, size: int) -> int:
    """Bytes of the model's own weights of ``size`` bytes each. Of linear layers in 4 bits, the packed weights
    with a float32 scale for each block, and the largest layer unpacked in a pass."""
    if params.policy.quantised is None:
        return size * shape.parameters
    layers = [inner * outer for inner, outer in shape.linear_layers]
    packed = shape.layers * sum(layers)
    return size * (shape.parameters - packed + max(layers)) + packed // 2 + 4 * packed // BLOCK


def imitation_memory(params: Params, shape: ModelShape) -> dict[str, int]:
    """Bytes of one process of imitation, part by part; all exist together. Empty if nothing is imitated."""
    if not params.imitation.wanted:
        return {}
    half, lora = params.policy.dtype == "bfloat16", params.imitation.lora
    count = shape.parameters if lora is None else _changes(params, shape, lora)
    limit = min(params.training.microbatch_tokens, params.imitation.batch_size * longest(params, shape))
    whole = params.training.model_copy(update={"lora": lora, "microbatch_tokens": limit})
    batch = _batch_memory(params.model_copy(update={"training": whole}), shape, 2 if half else 4)
    batch.pop(LESSONS, None)
    size, several = 2 if half else 4, params.processes > 1
    own = min(count, -(-count // params.processes) + shape.vocabulary * shape.hidden) if several else count
    parts = {
        "weights": size * count + (0 if lora is None else _untrained(params, shape, size)),
        "float32 copy": 4 * own if half else 0,
        "gradients": (size + 4 if half or several else size) * count,
        "moments": 8 * own,
        "updated weights on their way": size * own if several else 0,
        GAPS.removeprefix("imitation: "): size * count if half else 0,
        **{part.removeprefix("batch: "): size for part, size in batch.items()},
    }
    return {f"imitation: {part}": size for part, size in parts.items()}


LEARNER = ("learner: ",)
"""Parts that a training process holds from its first update on."""
LEFT = "torch: memory of an update"
"""What torch may still hold when vLLM wakes."""
GPU_ONLY = (UNUSED, GAPS)
"""Parts that take no memory on a CPU: its pages count only once written, and are returned when freed."""
PHASES = {
    "comparing the model with its scorer": ("comparing: ", "engine: weights"),
    "sampling": (*LEARNER, "engine: "),
    "scoring by the reference": (*LEARNER, "reference: weights", "reference: one pass"),
    "updating": (*LEARNER, "batch: ", "update: "),
    "handing weights to the engine": (*LEARNER, "engine: weights", "handover: "),
}
"""Phase of a training to the parts it needs in addition to the permanent ones."""


def parts_by_phase(
    parts: Mapping[str, int], sleeps: bool, on_gpu: bool, beside: bool = False, resident: bool = False
) -> dict[str, dict[str, int]]:
    """For imitation and each phase of training: what is held in memory at once, in bytes.

    Args:
        parts: the results of :func:`training_memory` and :func:`imitation_memory`.
        sleeps: whether the engine holds its memory all the time, except a GPU's (``EngineParameters``).
        on_gpu: whether this is a GPU's memory.
        beside: whether the engine samples at the same time as everything else (``training.lag``).
        resident: whether the reference's weights are on the GPU while it does not score.
    """
    always = []
    if not on_gpu:
        parts = {part: size for part, size in parts.items() if part not in GPU_ONLY}
    if resident or not on_gpu:
        always.append("reference: weights")
    if beside and not on_gpu:  # a GPU's learner leaves these copies to the machine
        always.append("lag: ")
    if beside or (sleeps and not on_gpu):
        always.append("engine: ")
    elif not sleeps:
        always.append("engine: weights")
    found = {
        phase: {part: size for part, size in parts.items() if part.startswith((*always, *own))}
        for phase, own in PHASES.items()
    }
    if sleeps and on_gpu:  # torch and vLLM allocate apart: neither uses what the other keeps
        held = ("learner: ", "engine: ")
        found["sampling"][LEFT] = max(
            sum(size for part, size in own.items() if not part.startswith(held)) for own in found.values()
        )
    imitating = {part: size for part, size in parts.items() if part.startswith("imitation: ")}
    return {**found, "imitating": imitating} if imitating else found


def memory_by_phase(
    parts: Mapping[str, int], sleeps: bool, on_gpu: bool, beside: bool = False
) -> dict[str, int]:
    """The most bytes of each phase of :func:`parts_by_phase`, with the same arguments."""
    held = parts_by_phase(parts, sleeps, on_gpu, beside)
    return {phase: sum(sizes.values()) for phase, sizes in held.items()}


def longest(params: Params, shape: ModelShape) -> int:
    """The most tokens of a prompt and its response together."""
    asked = params.policy.context_tokens + params.sampling.max_new_tokens
    return asked if shape.positions is None else min(asked, shape.positions)


def _batch_memory(params: Params, shape: ModelShape, size: int) -> dict[str, int]:
    """Bytes of one microbatch; ``size`` is the number of bytes of the learner's type."""
    tokens = max(params.training.microbatch_tokens, longest(params, shape))
    attention = (shape.heads + shape.kv_heads) * shape.head_size
    kept = size * (4 * shape.hidden + 4 * attention + 4 * shape.intermediate) + 4 * 4 * shape.hidden
    lora = params.training.lora
    if lora is not None:  # A x of every linear layer, and its output without the change
        kept += size * sum(lora.rank + output for _, output in shape.linear_layers)
    half = size if size < 4 else 0
    chunk = max(1, CHUNK_LOGITS // shape.vocabulary)
    several = tokens > chunk
    logits = 4 * (LOGIT_COPIES + shape.soft_cap + several) + half
    head = 0 if lora is not None else shape.hidden * (4 + half if several else size)
    passed: Passed = _checkpointed if params.training.gradient_checkpointing else _kept
    if params.policy.attention == "flash_attention_2":
        passed = _without_masks(passed)
    parts = {
        **passed(params, shape, size, kept),
        "batch: logits": shape.vocabulary * (min(tokens, chunk) * logits + head),
    }
    if params.experience.compares_distributions:
        parts[LESSONS] = 4 * LESSON_COPIES * shape.vocabulary * min(tokens, chunk)
    return parts


def _kept(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Bytes if every layer keeps its activations, ``kept`` bytes per token, and prompts are shared."""
    limit, response = params.training.microbatch_tokens, params.sampling.max_new_tokens
    length = longest(params, shape)
    repeated = shape.heads if shape.heads > shape.kv_heads else 0
    # Three more copies for one layer: the selected, the joined, and the gradient's.
    copies = shape.layers * (shape.kv_heads + repeated) + 3 * shape.heads
    grows = _grows(params)
    fanned_out = max(FAN_OUT * limit, length) if response > 1 or grows else 0
    # As wide as a prompt and its response; as high as the response or, if prompts grow, as an episode.
    mask = (max(limit, length) * length if grows else fanned_out * (response - 1)) * (1 + size)
    return {
        "batch: activations": max(limit, length) * (shape.layers + 1) * kept,
        "batch: keys and values fanned out": fanned_out * 2 * shape.head_size * copies * size + mask,
    }


def _without_masks(passed: Passed) -> Passed:
    """Bytes if whole sequences are packed into one row: no prompt is shared, and there is no mask."""

    def activations(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
        found = passed(params, shape, size, kept)
        return {"batch: activations": found["batch: activations"]}

    return activations


def _grows(params: Params) -> bool:
    """Whether a step's prompt extends the previous one."""
    return params.policy.make_state_update().grows


def _checkpointed(params: Params, shape: ModelShape, size: int, kept: int) -> dict[str, int]:
    """Bytes if every layer keeps its input, except one layer at a time, which keeps everything."""
    length = longest(params, shape)
    tokens = max(params.training.microbatch_tokens, length)
    keys_and_values = 2 * shape.head_size * (shape.kv_heads + 4 * shape.heads) * size
    return {
        "batch: activations": tokens * (shape.layers * shape.hidden * size + 2 * kept + keys_and_values),
        "batch: attention mask": tokens * length * (1 + size),
    }
