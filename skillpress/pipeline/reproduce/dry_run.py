"""What an experiment would do, without doing it: its parameters, size, memory, time and disk space.

    skillpress run --dry-run --params params/paper_alfworld.yaml --devices 8 --device-memory 80
    skillpress run --dry-run --params ... --sampling-rate 20000 --training-rate 8000 --step-ms 5

The verdict comes first: whether it fits, and how many hours it takes. No task is made and no weights are
read. All sizes are upper bounds. The memory is compared with this machine's, or with that of the GPUs that
the options give, and the output says what each GPU holds (``division.py``). What does not fit GPUs is
refused, with the changes that lower the peak most. A machine without GPUs is compared too but never refused:
it is probably not the one that will train.

The time comes from given or measured rates, or from earlier runs on this machine (``hours.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shutil import disk_usage

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.disk import disk
from skillpress.experiment.estimate import imitation_memory, training_memory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.fitting import demand
from skillpress.experiment.indistinct import buffer_in_words
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.node import Devices
from skillpress.experiment.params import Params, check_params
from skillpress.experiment.work import imitated, replayed, work
from skillpress.learn.training.learner import read_configuration
from skillpress.models.policy.logits import SOFT_CAP
from skillpress.pipeline.reproduce import hours
from skillpress.pipeline.reproduce.devices import GB, Rates
from skillpress.pipeline.reproduce.division import check_servers, division, fit
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT


@dataclass(frozen=True)
class DryRun:
    """What a dry run found."""

    text: str
    refusal: str = ""
    """Why the GPUs do not suffice, in one line; empty if they do, or there are none."""


def describe(variant: Variant, rates: Rates, devices: Devices) -> DryRun:
    """The variant's dry run; ``ParamsError`` if its parameters or the options of servers are wrong."""
    values = variant.values(ROOT)
    params = check_params(values, source=variant.name or "params.yaml")
    lines = ["", write_yaml(values), *_sizes(params)]
    shape, source = model_shape(params)
    refusal = ""
    if shape is None:
        missing = f"since the configuration of {params.policy.model} is not on this machine"
        verdict = [f"memory: unknown, {missing}"]
    else:
        lines.append(f"model: {params.policy.model}, {shape.parameters:,} parameters ({source})")
        check_servers(params, shape, devices)
        verdict, fitting = fit(values, params, shape, devices)
        refusal = "" if fitting or devices.count is None else verdict[0]
        free = disk_usage(ROOT).free if devices.here else None
        verdict += _disk_that_lacks(params, shape, free)
        lines += [*_memory(params, shape), *division(params, shape, devices), *_disk(params, shape)]
    verdict.append(hours.verdict(params, rates))
    return DryRun("\n".join([*verdict, *lines, *hours.hours(params, rates)]), refusal)


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
    if params.training.steps:
        yield buffer_in_words(params)
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
        yield "  and the memory of the engine's servers"


def _disk_that_lacks(params: Params, shape: ModelShape, free: int | None) -> Iterator[str]:
    """A line if ``free`` bytes do not suffice; None means another machine's disk."""
    asked = sum(disk(params, shape).values())
    if free is not None and asked > free:
        yield (
            f"does not fit the disk: {asked / GB:.2f} GB at most, and {free / GB:.2f} GB are free here; free "
            f"{(asked - free) / GB:.2f} GB more"
        )


def _disk(params: Params, shape: ModelShape) -> Iterator[str]:
    """Its disk space."""
    parts = disk(params, shape)
    asked = sum(parts.values())
    yield f"disk, at most: {asked / GB:.2f} GB"
    for part, size in parts.items():
        yield f"  {part}: {size / GB:.2f} GB"
