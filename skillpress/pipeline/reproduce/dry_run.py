"""What an experiment would do, without doing it: its parameters, size, memory, time and disk space.

    skillpress run --dry-run --params params/paper_alfworld.yaml --devices 8 --device-memory 80
    skillpress run --dry-run --params ... --sampling-rate 20000 --training-rate 8000 --step-ms 5

No task is made and no weights are read. All sizes are upper bounds. The memory is compared with this
machine's, or with that of the devices that the options give. If it does not suffice, the output names
parameters with which it would.

The time is estimated only from the given rates: tokens per second of one process through the model (or
through its update), and the milliseconds of an environment step. Work that processes share is divided by
their number. A token that training scores without a backward pass takes a third of the time of one that it
learns from, or a quarter with gradient checkpointing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from shutil import disk_usage
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.disk import disk
from skillpress.experiment.estimate import imitation_memory, training_memory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.fitting import Devices, changed, demand, fits, remedies
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.params import Params, check_params
from skillpress.experiment.work import imitated, replayed, scored, work
from skillpress.learn.training.learner import read_configuration
from skillpress.models.policy.logits import SOFT_CAP
from skillpress.pipeline.reproduce.devices import GB, Rates
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT


def describe(variant: Variant, rates: Rates, devices: Devices) -> str:
    """The variant's dry run as text; ``ParamsError`` if its parameters are wrong."""
    values = variant.values(ROOT)
    params = check_params(values, source=variant.name or "params.yaml")
    lines = [write_yaml(values), *_sizes(params)]
    shape, source = model_shape(params)
    if shape is None:
        missing = f"since the configuration of {params.policy.model} is not on this machine"
        lines.append(f"memory: unknown, {missing}")
    else:
        lines.append(f"model: {params.policy.model}, {shape.parameters:,} parameters ({source})")
        lines += [*_memory(params, shape), *_fit(values, params, shape, devices)]
        lines += _disk(params, shape, disk_usage(ROOT).free if devices.here else None)
    return "\n".join([*lines, *_time(params, rates)])


def model_shape(params: Params) -> tuple[ModelShape | None, str]:
    """The policy's shape, and its source; None if this machine cannot find it out."""
    name = params.policy.model
    if params.policy.from_scratch:
        policy = Experiment(params).starting_policy()
        return shape_of(policy.model.config, policy.parameters), "built from the parameters"
    if name in KNOWN_SHAPES:
        return KNOWN_SHAPES[name], "from the table of known models"
    return _shape_of_files(name), "from its configuration"


def _shape_of_files(name: str) -> ModelShape | None:
    """The shape by the model's configuration, if it is on this machine; no weights are read."""
    try:
        config = AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (OSError, ValueError):
        return None
    return shape_of(config, sum(weight.numel() for weight in model.parameters()))


def shape_of(config: object, parameters: int) -> ModelShape:
    """The shape of a model with this configuration; for a multimodal model, that of its language model."""
    config = config.get_text_config()  # type: ignore[attr-defined]
    heads = config.num_attention_heads  # type: ignore[attr-defined]
    hidden = config.hidden_size  # type: ignore[attr-defined]
    return ModelShape(
        parameters=parameters,
        layers=config.num_hidden_layers,  # type: ignore[attr-defined]
        hidden=hidden,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_size=getattr(config, "head_dim", None) or hidden // heads,
        vocabulary=config.vocab_size,  # type: ignore[attr-defined]
        heads=heads,
        intermediate=getattr(config, "intermediate_size", None)
        or getattr(config, "n_inner", None)
        or 4 * hidden,
        soft_cap=getattr(config, SOFT_CAP, None) is not None,
        positions=getattr(config, "max_position_embeddings", None),
    )


def _sizes(params: Params) -> Iterator[str]:
    tasks = params.tasks
    yield f"tasks: {tasks.train} train, {tasks.validation} validation, {tasks.test} test"
    shown = imitated(params)
    yield (
        f"demonstrations: {shown.episodes:,}, at most {shown.environment_steps:,} samples with "
        f"{shown.tokens:.3g} tokens in all, each learned {params.imitation.epochs} times"
    )
    yield "at most:"
    for part, amount in work(params).items():
        yield (
            f"  {part}: {amount.episodes:,} episodes, {amount.environment_steps:,} environment steps, "
            f"{amount.prompt_tokens:.3g} prompt and {amount.sampled_tokens:.3g} sampled tokens"
        )
    again = replayed(params)
    if again.episodes:
        yield f"  learned from again, not played: {again.episodes:,} episodes, {again.tokens:.3g} tokens"


def _memory(params: Params, shape: ModelShape) -> Iterator[str]:
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    parts |= imitation_memory(params, shape)
    yield f"memory of one of {params.processes} training processes, at most:"
    for part, size in parts.items():
        yield f"  {part}: {size / 2**30:.2f} GiB"
    for place, on_gpu in (("on a GPU", True), ("on CPUs", False)):
        most = demand(params, shape, on_gpu)
        yield f"  together, {place}: {most.size / 2**30:.2f} GiB, while {most.phase}"
    if params.engine.shared:
        yield "  and the memory of the engine's servers, wherever they are"


def _fit(values: Mapping[str, Any], params: Params, shape: ModelShape, devices: Devices) -> Iterator[str]:
    """Whether it fits, and if not, with which parameters it would."""

    def asked(params: Params) -> str:
        found = demand(params, shape, devices.count is not None)
        return f"{found.size / GB:.1f} GB while {found.phase}"

    room, processes = devices.room(params.processes) / GB, params.processes
    each = f"each of {processes} processes" if processes > 1 else "the process"
    if fits(params, shape, devices):
        yield f"fits {devices.words}: {each} takes at most {asked(params)}, of {room:.1f} GB"
        return
    if devices.suffice(processes):
        yield f"does not fit {devices.words}: {each} may take {asked(params)}, and has {room:.1f} GB"
    else:
        yield f"does not fit {devices.words}: {each} needs one"
    found = remedies(values, shape, devices)
    for changes in found:
        other = changed(values, changes)
        assert other is not None
        keys = ", ".join(f"{key}: {json.dumps(value)}" for key, value in changes.items())
        yield f"  it would fit with {keys} ({asked(other)})"
    if not found:
        yield "  no key of params.yaml makes it fit: take a smaller model, shorter prompts, or larger devices"


def _disk(params: Params, shape: ModelShape, free: int | None) -> Iterator[str]:
    """Its disk space, and whether ``free`` bytes suffice; None means another machine's disk."""
    parts = disk(params, shape)
    asked = sum(parts.values())
    yield f"disk, at most: {asked / GB:.2f} GB"
    for part, size in parts.items():
        yield f"  {part}: {size / GB:.2f} GB"
    if free is not None and asked > free:
        yield f"  does not fit: {free / GB:.2f} GB are free here; free {(asked - free) / GB:.2f} GB more"


def _time(params: Params, rates: Rates) -> Iterator[str]:
    parts, processes = work(params), params.processes
    shown, training = imitated(params), parts["train_policy"].tokens + replayed(params).tokens
    # An engine outside serves all processes; one of them then plays all episodes that are not training's.
    players = {part: 1 if params.engine.shared and "train" not in part else processes for part in parts}
    acted = sum(amount.environment_steps / players[part] for part, amount in parts.items())
    per_second = 1000 / rates.step_ms if rates.step_ms else None
    forward = rates.training and rates.training * (4 if params.training.gradient_checkpointing else 3)
    sampled = sum(amount.tokens for amount in parts.values())
    amounts = [
        ("demonstrations", shown.environment_steps / processes, per_second, "--step-ms"),
        ("imitation", params.imitation.epochs * shown.tokens / processes, rates.training, "--training-rate"),
        ("sampling", sampled / (1 if params.engine.shared else processes), rates.sampling, "--sampling-rate"),
        ("training", training / processes, rates.training, "--training-rate"),
        *(
            (f"scoring {reason}", tokens / processes, forward, "--training-rate")
            for reason, tokens in scored(params).items()
        ),
        ("environment", acted, per_second, "--step-ms"),
    ]
    share = f"shared by {processes} processes" if processes > 1 else "in one process"
    yield f"time, {share}, at most, from the stated rates alone:"
    amounts = [each for each in amounts if each[1]]
    hours = [amount / rate / 3600 if rate else None for _, amount, rate, _ in amounts]
    for (name, _, _, option), takes in zip(amounts, hours, strict=True):
        yield f"  {name}: unknown without {option}" if takes is None else f"  {name}: {takes:.1f} hours"
    if all(rate for _, _, rate, _ in amounts):
        yield f"  one after the other: {sum(filter(None, hours)):.1f} hours"
