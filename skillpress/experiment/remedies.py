"""Which changes make an experiment fit into some devices, and which of them help most.

A change is one key of the parameters, or a few together, or an option of the servers on a node. The same
estimate says what a changed experiment takes. Harmless changes come first: those that cost only time, then
those that share more, then those that change the experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.experiment.estimate import longest
from skillpress.experiment.fitting import Demand, excess, fullest
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.node import SERVER_CACHE, SERVER_GPUS, Devices, servers_here
from skillpress.experiment.params import Params, check_params, merge

STAGES = 4
"""Number of ZeRO's stages, from 0."""
RANK = 32
"""Rank of the adapter that is proposed."""
FIRST_PORT = 8801
"""Port of the first server that is proposed."""
ANSWER_SECONDS = 600.0

Changes = Mapping[str, Any]
"""Dotted keys of params.yaml, or options of servers (``node.py``), to values."""

COSTS = {
    "training.microbatch_tokens": "an update takes more passes",
    "training.gradient_checkpointing": "an update takes a third more time",
    "sampling.slots": "fewer episodes are played at once",
    "engine.cache_gib": "fewer responses are sampled at once",
    "engine.urls": "fewer servers sample",
    SERVER_CACHE: "fewer responses are sampled at once",
    SERVER_GPUS: "a server's GPUs exchange every layer's results",
    "engine": "its GPUs do not train",
    "processes": "the step is divided otherwise: another experiment, up to rounding",
    "training.deepspeed": "processes exchange more",
    "policy.dtype": "numbers are rounded to 8 bits",
    "training.lora": "only low-rank changes are learned",
    "imitation.demonstrations": "nothing is imitated",
}
"""What a change costs, by its key."""


@dataclass(frozen=True)
class Help:
    """What one change does for the peak."""

    changes: Changes
    peak: Demand
    """The demand of the fullest device after the change."""
    fits: bool
    """Whether the experiment fits by this change alone."""

    @property
    def cost(self) -> str:
        """What the change costs."""
        return next(cost for key, cost in COSTS.items() if key in self.changes)


def remedies(values: Mapping[str, Any], shape: ModelShape, devices: Devices) -> list[Changes]:
    """Changes that make an experiment fit: every single key that suffices, else a few keys together. Empty if
    even those do not suffice."""
    params = check_params(values, source="the parameters")
    levers = list(_levers(params, shape, devices))

    def beyond(changes: Changes) -> float:
        return _beyond(values, changes, shape, devices)

    single = [next((option for option in lever if beyond(option) <= 0), None) for lever in levers]
    if fitting := [option for option in single if option is not None]:
        return fitting
    # Start from every number of processes too: fewer processes share less, but each has more of a machine's
    # memory.
    starts = [{}, *({"processes": number} for number in _numbers_of_processes(params, devices))]
    together = [found for start in starts if (found := _together(start, levers, beyond)) is not None]
    return sorted(together, key=len)[:1]


def most_helpful(
    values: Mapping[str, Any], shape: ModelShape, devices: Devices, number: int = 2
) -> list[Help]:
    """The single changes that lower the peak of the fullest device most, the best first.

    Of each lever it is the mildest setting that makes the experiment fit, else the one with the lowest peak.
    If a process or a server has no device, only changes count that give each one.
    """
    params = check_params(values, source="the parameters")
    now = excess(params, shape, devices)
    tried = []
    for lever in _levers(params, shape, devices):
        found = [(_beyond(values, option, shape, devices), option) for option in lever]
        best = next((each for each in found if each[0] <= 0), None)
        best = best or min(found, key=lambda each: each[0], default=None)
        if best is not None and best[0] < now:
            tried.append(best)
    best_first = sorted(tried, key=lambda each: each[0])[:number]
    return [
        Help(option, peak_after(values, option, shape, devices), beyond <= 0) for beyond, option in best_first
    ]


def peak_after(values: Mapping[str, Any], changes: Changes, shape: ModelShape, devices: Devices) -> Demand:
    """The demand of the fullest device after the changes; ``ValueError`` if they are refused."""
    other = changed(values, changes)
    if other is None:
        raise ValueError(f"{changes} are refused")
    return fullest(other, shape, devices.with_options(changes))


def _beyond(values: Mapping[str, Any], changes: Changes, shape: ModelShape, devices: Devices) -> float:
    """Bytes beyond the limit after the changes; infinite if they are refused."""
    other = changed(values, changes)
    return inf if other is None else excess(other, shape, devices.with_options(changes))


def _together(
    start: Changes, levers: Sequence[Sequence[Changes]], beyond: Callable[[Changes], float]
) -> Changes | None:
    """Pulls one lever after another until the experiment fits; None if it never does."""
    held = start
    for lever in levers:
        tried = [{**held, **option} for option in lever if not start.keys() & option.keys()]
        if fitting := next((each for each in tried if beyond(each) <= 0), None):
            return _without_what_is_not_needed(fitting, beyond)
        held = min([held, *tried], key=beyond)
    return None


def _without_what_is_not_needed(changes: Changes, beyond: Callable[[Changes], float]) -> Changes:
    for key in changes:
        fewer = {other: value for other, value in changes.items() if other != key}
        if beyond(fewer) <= 0:
            changes = fewer
    return changes


def _levers(params: Params, shape: ModelShape, devices: Devices) -> Iterator[list[Changes]]:
    """Levers, each with its settings from the one that changes least to the one that saves most."""
    training, engine = params.training, params.engine.model_dump()
    stage, kind = int(training.deepspeed[len("zero")]), training.deepspeed.partition("_")[2]
    numbers: list[Changes] = [{"processes": each} for each in _numbers_of_processes(params, devices)]
    suffice = devices.suffice(params)
    if not suffice:
        yield numbers
        yield from _smaller_servers(params, devices)
    yield [
        {"training.microbatch_tokens": tokens}
        for tokens in _halves(training.microbatch_tokens, longest(params, shape))
    ]
    yield [] if training.gradient_checkpointing else [{"training.gradient_checkpointing": True}]
    yield [{"sampling.slots": slots} for slots in _halves(params.sampling.slots, 1)]
    yield [{"engine.cache_gib": float(gib)} for gib in _halves(int(engine.get("cache_gib", 0)), 1)]
    if suffice:
        yield from _smaller_servers(params, devices)
        yield [*_servers_apart(params, devices)]
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
    now, possible = params.processes, _divisors(params.training.tasks_per_step)
    if devices.suffice(params) and devices.count is not None:
        return [number for number in possible if now < number <= devices.for_processes(params)]
    most = now - 1 if devices.count is None else devices.for_processes(params)
    return [number for number in reversed(possible) if number <= most]


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _smaller_servers(params: Params, devices: Devices) -> Iterator[list[Changes]]:
    """Levers for the servers on a node: fewer of them, less memory for each, or each over more GPUs."""
    urls = servers_here(params)
    if devices.count is None or not urls:
        return
    if not devices.suffice(params):
        yield [{"engine.urls": urls[:number]} for number in range(len(urls) - 1, 0, -1)]
    cache, spread = devices.servers.cache_gib, devices.servers.gpus
    yield [] if cache is None else [{SERVER_CACHE: float(gib)} for gib in _halves(int(cache), 1)]
    free = devices.count - params.processes
    yield [{SERVER_GPUS: spread * times} for times in (2, 4, 8) if spread * times * len(urls) <= free]


def _servers_apart(params: Params, devices: Devices) -> Iterator[Changes]:
    """Servers on the GPUs that the processes leave, first with as many processes as possible."""
    if devices.count is None or params.engine.shared:
        return
    for number in reversed(_divisors(params.training.tasks_per_step)):
        servers = devices.count - number
        if number > params.processes or servers < 1:
            continue
        urls = [f"http://127.0.0.1:{FIRST_PORT + server}" for server in range(servers)]
        engine = {"name": "server", "urls": urls, "answer_seconds": ANSWER_SECONDS}
        yield {"engine": engine} if number == params.processes else {"engine": engine, "processes": number}


def changed(values: Mapping[str, Any], changes: Changes) -> Params | None:
    """The parameters with the changes of their keys; None if they are refused."""
    overlay: dict[str, Any] = {}
    for key, value in changes.items():
        if key.startswith("--"):
            continue
        section, _, name = key.rpartition(".")
        overlay = merge(overlay, {section: {name: value}} if section else {name: value})
    try:
        return check_params(merge(values, overlay), source="a remedy")
    except ParamsError:
        return None
