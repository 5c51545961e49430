"""What an experiment would do, without doing it: the verdict, its stages, memory, episodes and updates.

    skillpress run --dry-run --params params/paper_alfworld.yaml --devices 8 --device-memory 80

The verdict comes first: whether it fits. No task is made and no weights are read. Memory, episodes and
updates are upper bounds. The memory is compared with this machine's, or with that of the GPUs that the
options give; what does not fit GPUs is refused. A machine without GPUs is compared too but never refused: it
is probably not the one that will train.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from skillpress.core.errors import ParamsError
from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.fitting import SERVING, Demand, Devices, fits, fullest, servers_here
from skillpress.experiment.indistinct import buffer_in_words
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.params import Params, check_params
from skillpress.experiment.work import episodes, updates_per_step
from skillpress.models.policy.logits import SOFT_CAP
from skillpress.pipeline.graph import GRAPH, read_stages
from skillpress.pipeline.reproduce.devices import GB
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.whole_run import outdated


@dataclass(frozen=True)
class DryRun:
    """The results of a dry run."""

    text: str
    refusal: str = ""
    """Why the GPUs do not suffice, in one line; empty if they suffice or the machine has no GPU."""


def describe(variant: Variant, devices: Devices) -> DryRun:
    """The variant's dry run; ``ParamsError`` if its parameters or the options of servers are wrong."""
    values = variant.values(ROOT)
    params = check_params(values, source=variant.name or "params.yaml")
    shape, source = model_shape(params)
    refusal, memory = "", list[str]()
    if shape is None:
        verdict = f"memory: unknown, since the configuration of {params.policy.model} is not on this machine"
    else:
        _check_servers(params, shape, devices)
        most, fitting = fullest(params, shape, devices), fits(params, shape, devices)
        verdict = _verdict(params, most, devices, fitting)
        refusal = "" if fitting or devices.count is None else verdict
        memory = [
            f"model: {params.policy.model}, {shape.parameters:,} parameters ({source})",
            f"memory while {most.phase}, at most: {_parts(most)}",
        ]
    folder = ROOT / FOLDER / variant.name if variant.name else ROOT
    lines = [verdict, _stages(values, folder), *memory, *_work(params), "", write_yaml(values)]
    return DryRun("\n".join(lines), refusal)


def _check_servers(params: Params, shape: ModelShape, devices: Devices) -> None:
    """``ParamsError`` if options of servers are given for none, or the model cannot be spread so."""
    gpus, cache = devices.server_gpus, devices.server_cache
    if (gpus > 1 or cache != Devices.server_cache) and not servers_here(params):
        raise ParamsError(
            f"--server-gpus is {gpus} and --server-cache {cache:g}, but the experiment has no server on the "
            "node: use engine server with urls such as http://127.0.0.1:8801"
        )
    if shape.heads % devices.server_gpus:
        raise ParamsError(
            f"--server-gpus is {devices.server_gpus}: the model's {shape.heads} attention heads cannot be "
            "spread evenly over so many"
        )


def _verdict(params: Params, most: Demand, devices: Devices, fitting: bool) -> str:
    """Whether it fits, in a line."""
    processes, room = params.processes, f"{devices.room(params.processes) / GB:.1f} GB"
    each = f"each of {processes} processes" if processes > 1 else "the process"
    taker = "each GPU of a server" if most.phase == SERVING else each
    amount = f"{most.size / GB:.1f} GB while {most.phase}"
    if fitting:
        return f"fits {devices.words}: {taker} takes at most {amount}, of {room}"
    if devices.suffice(params):
        return f"does not fit {devices.words}: {taker} may take {amount}, and has {room}"
    servers = servers_here(params)
    further = f", and {len(servers)} servers need {devices.server_gpus} each" if servers else ""
    return f"does not fit {devices.words}: {each} needs one{further}"


def _stages(values: Mapping[str, Any], folder: Path) -> str:
    """The stages that would run in this workspace."""
    every = [stage for stage in read_stages(ROOT / GRAPH) if stage.parameters]
    would = [stage.name for stage in outdated(every, values, folder)]
    return f"would run: {', '.join(would) or 'no stage'}; a stage whose code or data changed runs too"


def _parts(most: Demand) -> str:
    """The parts of a demand in GB, those of 0.05 and more, grouped by the part of the program."""
    groups: dict[str, list[str]] = {}
    for part, size in most.parts.items():
        group, _, name = part.partition(": ")
        if size >= GB / 20:
            groups.setdefault(group, []).append(f"{name} {size / GB:.1f}")
    return "; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items()) + " GB"


def _work(params: Params) -> Iterator[str]:
    """Lines about demonstrations, episodes and updates."""
    if params.imitation.demonstrations:
        count, epochs = params.imitation.demonstrations, params.imitation.epochs
        yield f"demonstrations: {count:,}, each learned {epochs} times"
    yield f"episodes, at most, of {params.environment.max_steps} steps:"
    for part, count in episodes(params).items():
        yield f"  {part}: {count:,} episodes"
    steps = params.training.steps
    if steps:
        each = updates_per_step(params)
        yield f"updates: {steps} training steps of at most {each}, {steps * each:,} in all"
        yield buffer_in_words(params)


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
