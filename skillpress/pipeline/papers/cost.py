"""What one training of a table costs at most: hours and GPU-hours at stated throughputs, and disk space.

Everything is an upper bound from the parameters, as in a dry run (``experiment/work.py``): every episode
lasts T steps, every prompt fills its budget and every response its length. Sampling, learning, the
reference's scores and the environment are counted one after the other. A token that is scored without a
backward pass takes a third of the time of one that is learned from.

Rollouts are counted before compression: 4 bytes for a prompt's token, 8 for a sampled one, and 12 for the
texts around it. DVC keeps a second copy of what a stage leaves. Two checkpoints exist while one replaces the
other, each with the weights, a float32 copy and two moments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.core.errors import ParamsError
from skillpress.evaluation.paper.manifest import NodeOfScale
from skillpress.experiment.fitting import Devices, fits, fullest
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params
from skillpress.experiment.work import episodes
from skillpress.pipeline.papers.planned import PaperRun, Planned
from skillpress.pipeline.reproduce.devices import GB
from skillpress.pipeline.reproduce.dry_run import model_shape

EXPLORER = "play_floors: explorer"
"""Episodes that the explorer plays, without a model."""
UNWRITTEN = "train_policy"
"""Training's parts: a run keeps a sample of their episodes, which is not counted."""
STATE, ROW, TEXT = 12, 256, 12
"""Bytes of an optimizer per weight, of a step without tokens, and of a sampled token's text."""


@dataclass(frozen=True)
class Cost:
    """Upper bounds on the cost of one training, with its baselines and its evaluation."""

    hours: float
    gpus: int
    disk_gb: float
    fitting: str
    """Whether it fits the GPUs, in words."""


def cost(params: Params, shape: ModelShape, node: NodeOfScale) -> Cost:
    """The cost of a training on a node."""
    words = f"{node.devices} GPUs of {node.device_memory:g} GB"
    devices = Devices(words=words, memory=int(node.device_memory * GB), count=node.devices)
    most = fullest(params, shape, devices)
    fitting = "fits" if fits(params, shape, devices) else "does not fit"
    return Cost(
        hours=hours(params, node),
        gpus=node.devices,
        disk_gb=disk(params, shape) / GB,
        fitting=f"{fitting} {words}, {most.size / GB:.1f} GB of each while {most.phase}",
    )


def hours(params: Params, node: NodeOfScale) -> float:
    """Hours at the node's throughputs, at most."""
    played, algorithm = episodes(params), params.algorithm
    steps = {part: count * params.environment.max_steps for part, count in played.items()}
    each = params.policy.context_tokens + params.sampling.max_new_tokens
    sampled = each * sum(count for part, count in steps.items() if part != EXPLORER)
    learned = each * steps.get("train_policy", 0)
    scored = learned * algorithm.kl_share if algorithm.kl_coefficient else 0.0
    seconds = (
        sampled / node.sampling_rate
        + learned / node.training_rate
        + scored / (3 * node.training_rate)
        + sum(steps.values()) * node.step_ms / 1000
    )
    return seconds / params.processes / 3600


def disk(params: Params, shape: ModelShape) -> int:
    """Bytes of a training's results and of its checkpoints while it runs."""
    size = 2 if params.policy.dtype == "bfloat16" else 4
    tokens = params.policy.context_tokens + params.sampling.max_new_tokens
    step = ROW + 4 * tokens + (4 + TEXT) * params.sampling.max_new_tokens
    kept = sum(count for part, count in episodes(params).items() if not part.startswith(UNWRITTEN))
    left = 2 * size * shape.parameters + kept * params.environment.max_steps * step
    checkpoints = 2 * (size + STATE) * shape.parameters if params.training.steps else 0
    return 2 * left + checkpoints


def forecast(needed: Planned, runs: Sequence[PaperRun]) -> Iterator[str]:
    """Lines that list the runs, with the cost of each and of all.

    Raises:
        ParamsError: the configuration of a model is not on this machine.
    """
    scale = needed.manifest.scales[needed.scale]
    amounts: list[tuple[float, float]] = []
    for benchmark, methods in needed.methods.items():
        seeds, own = needed.seeds(benchmark), [run for run in runs if run.benchmark == benchmark]
        line = (
            f"{benchmark}: {len(own)} trainings, {', '.join(methods)} with seed {', '.join(map(str, seeds))}"
        )
        if scale.node is not None:
            each = node_cost(own[0], scale.node)
            amounts += [(each.hours * each.gpus, each.disk_gb)] * len(own)
            line += (
                f"; each at most {each.hours:.1f} hours on {each.gpus} GPUs ({each.hours * each.gpus:.0f} "
                f"GPU-hours) and {each.disk_gb:.0f} GB of disk; {each.fitting}"
            )
        elif (minutes := scale.benchmarks[benchmark].minutes) is not None:
            line += (
                f"; each took about {minutes:g} minutes, two beside each other on two cores "
                f"({minutes * len(own) / 120:.1f} hours)"
            )
        yield line
    if scale.node is not None:
        used, space = map(sum, zip(*amounts, strict=True))
        yield (
            f"all: {len(amounts)} trainings, at most {used:,.0f} GPU-hours and {space:,.0f} GB; every "
            f"episode counted as if it lasted all its steps, at {scale.node.sampling_rate:,.0f} sampled and "
            f"{scale.node.training_rate:,.0f} learned tokens a second and GPU, which are examples"
        )


def node_cost(run: PaperRun, node: NodeOfScale) -> Cost:
    """The cost of one training; ``ParamsError`` if the shape of its model is unknown here."""
    shape, _ = model_shape(run.params)
    if shape is None:
        raise ParamsError(
            f"policy.model: the configuration of {run.params.policy.model} is not on this machine, so memory "
            "and disk are unknown; name a folder with it by --set policy.model=FOLDER"
        )
    return cost(run.params, shape, node)
