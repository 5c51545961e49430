"""Whether an experiment fits into the memory of some devices, and which changes would make it fit.

A remedy is one key of the parameters, or a few together. It is proposed only if the same estimate says that
the changed experiment fits. Harmless remedies come first: those that cost only time, then those that share
more, then those that change the experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.experiment.estimate import imitation_memory, longest, memory_by_phase, training_memory
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params, check_params, merge
from skillpress.learn.training.learner import read_configuration

MARGIN = 0.1
"""Share of a device's memory that stays free for uncounted needs: CUDA, NCCL, fragments."""
STAGES = 4
"""Number of ZeRO's stages, from 0."""
RANK = 32
"""Rank of the adapter that is proposed."""

Changes = Mapping[str, Any]
"""Dotted keys of params.yaml to values."""


@dataclass(frozen=True)
class Devices:
    """The devices on which processes of imitation and training run."""

    words: str
    """Name of the devices in messages."""
    memory: int
    """Bytes of memory of each."""
    count: int | None
    """Number of GPUs, one per process; None if all processes share a machine's memory."""
    here: bool = False
    """Whether the devices are this machine's."""

    def suffice(self, processes: int) -> bool:
        """Whether there is a device for each of so many processes."""
        return self.count is None or processes <= self.count

    def room(self, processes: int) -> int:
        """Bytes that each of so many processes can use."""
        free = int(self.memory * (1 - MARGIN))
        return free // processes if self.count is None else free


@dataclass(frozen=True)
class Demand:
    """The most memory that one process asks for."""

    size: int
    """Bytes."""
    phase: str
    """Phase in which the process asks for them."""


def demand(params: Params, shape: ModelShape, on_gpu: bool) -> Demand:
    """The most memory that a process of imitation or training takes; without training steps, of playing."""
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    parts |= imitation_memory(params, shape)
    phases = memory_by_phase(parts, params.engine.sleeps, on_gpu, beside=params.training.lag > 0)
    if not params.training.steps:
        engine = sum(size for part, size in parts.items() if part.startswith("engine: "))
        policy = parts["comparing: whole weights"]
        phases = {"sampling": policy + engine, "imitating": phases.get("imitating", 0)}
    phase = max(phases, key=lambda each: phases[each])
    return Demand(phases[phase], phase)


def fits(params: Params, shape: ModelShape, devices: Devices) -> bool:
    """Whether each process has the memory that it asks for, and a margin stays free."""
    return _excess(params, shape, devices) <= 0


def remedies(values: Mapping[str, Any], shape: ModelShape, devices: Devices) -> list[Changes]:
    """Changes that make an experiment fit: every single key that suffices, else a few keys together. Empty if
    even those do not suffice."""
    params = check_params(values, source="the parameters")
    levers = list(_levers(params, shape, devices))

    def excess(changes: Changes) -> float:
        other = changed(values, changes)
        return inf if other is None else _excess(other, shape, devices)

    single = [next((option for option in lever if excess(option) <= 0), None) for lever in levers]
    if fitting := [option for option in single if option is not None]:
        return fitting
    # Start from every number of processes too: fewer processes share less, but each has more of a machine's
    # memory.
    starts = [{}, *({"processes": number} for number in _numbers_of_processes(params, devices))]
    together = [found for start in starts if (found := _together(start, levers, excess)) is not None]
    return sorted(together, key=len)[:1]


def _together(
    start: Changes, levers: Sequence[Sequence[Changes]], excess: Callable[[Changes], float]
) -> Changes | None:
    """Pulls one lever after another until the experiment fits; None if it never does."""
    held = start
    for lever in levers:
        tried = [{**held, **option} for option in lever if not start.keys() & option.keys()]
        if fitting := next((each for each in tried if excess(each) <= 0), None):
            return _without_what_is_not_needed(fitting, excess)
        held = min([held, *tried], key=excess)
    return None


def _without_what_is_not_needed(changes: Changes, excess: Callable[[Changes], float]) -> Changes:
    for key in changes:
        fewer = {other: value for other, value in changes.items() if other != key}
        if excess(fewer) <= 0:
            changes = fewer
    return changes


def _excess(params: Params, shape: ModelShape, devices: Devices) -> float:
    """Bytes that a process asks for beyond its limit; infinite if a process has no device."""
    if not devices.suffice(params.processes):
        return inf
    return demand(params, shape, devices.count is not None).size - devices.room(params.processes)


def _levers(params: Params, shape: ModelShape, devices: Devices) -> Iterator[list[Changes]]:
    """Levers, each with its settings from the one that changes least to the one that saves most."""
    training, engine = params.training, params.engine.model_dump()
    stage, kind = int(training.deepspeed[len("zero")]), training.deepspeed.partition("_")[2]
    numbers: list[Changes] = [{"processes": each} for each in _numbers_of_processes(params, devices)]
    if not devices.suffice(params.processes):
        yield numbers
    yield [
        {"training.microbatch_tokens": tokens}
        for tokens in _halves(training.microbatch_tokens, longest(params, shape))
    ]
    yield [] if training.gradient_checkpointing else [{"training.gradient_checkpointing": True}]
    yield [{"sampling.slots": slots} for slots in _halves(params.sampling.slots, 1)]
    yield [{"engine.cache_gib": float(gib)} for gib in _halves(int(engine.get("cache_gib", 0)), 1)]
    if devices.suffice(params.processes):
        yield numbers
    yield [{"training.deepspeed": f"zero{higher}_{kind}"} for higher in range(stage + 1, STAGES)]
    if params.policy.dtype == "float32":
        yield [
            {"policy.dtype": "bfloat16", "training.deepspeed": f"zero{stage}_bf16"}
            for stage in range(max(stage, 1), STAGES)
        ]
    if training.lora is None:
        yield [{"training.lora": {"rank": RANK, "alpha": 2 * RANK}}]
    if params.imitation.demonstrations:  # no stage of ZeRO shares imitation
        yield [{"imitation.demonstrations": 0}]


def _halves(number: int, least: int) -> Iterator[int]:
    while number // 2 >= least:
        number //= 2
        yield number


def _numbers_of_processes(params: Params, devices: Devices) -> list[int]:
    """Other numbers of processes that can share a step's tasks: fewer if all share one memory or if there are
    too few devices; more if each has its own memory."""
    now, tasks = params.processes, params.training.tasks_per_step
    possible = [number for number in range(1, tasks + 1) if tasks % number == 0]
    if devices.count is None or now > devices.count:
        most = now - 1 if devices.count is None else devices.count
        return [number for number in reversed(possible) if number <= most]
    return [number for number in possible if now < number <= devices.count]


def changed(values: Mapping[str, Any], changes: Changes) -> Params | None:
    """The parameters with the changes; None if they are refused."""
    overlay: dict[str, Any] = {}
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        overlay = merge(overlay, {section: {name: value}} if section else {name: value})
    try:
        return check_params(merge(values, overlay), source="a remedy")
    except ParamsError:
        return None
