"""How long an experiment takes, as text: by stated throughputs, or by measured steps of a trial.

Stated throughputs are tokens per second of one process, or of one server, and milliseconds of a step of the
environment. Work that processes or servers share is divided by their number. A token that training scores
without a backward pass takes a third of the time of one that it learns from, or a quarter with gradient
checkpointing.

A trial is the same experiment on the same devices with a few training steps. Its ``results/training.csv``
has the seconds of each. Every step is taken to last as long as their median; the first one, which prepares
kernels, is left out if there are others. Episodes outside of training are played at the trial's pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars

from skillpress.core.errors import ParamsError
from skillpress.experiment.params import Params
from skillpress.experiment.work import imitated, replayed, scored, work
from skillpress.models.engines.server import ServerParameters
from skillpress.pipeline.reproduce.devices import Rates
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.whole_run import known_seconds

PARTS = ("rollout", "shaping", "update")
"""The parts of a training step whose seconds add up to the step's."""
PACE = "environment_steps_per_second"


def verdict(params: Params, rates: Rates) -> str:
    """How long all of it takes, in a line: by the trial, else by the stated rates, else by the last runs of
    these stages on this machine."""
    if rates.measured is not None:
        training, others = _measured_hours(params, rates.measured)
        return f"takes {_hours(training + others)} at most, by the measured steps of {rates.measured}"
    took = [takes for _, takes, _ in _stated(params, rates)]
    if None not in took:
        return f"takes {_hours(sum(filter(None, took)))} at most, by the stated rates"
    if (seconds := known_seconds(params.model_dump(mode="json"), ROOT)) is not None:
        return f"takes {_hours(seconds / 3600)}, as its stages last did on this machine"
    missing = ", ".join(dict.fromkeys(option for _, takes, option in _stated(params, rates) if takes is None))
    return f"takes an unknown time: give {missing}, or --measured with a trial's results/training.csv"


def _hours(amount: float) -> str:
    return f"{amount:.1f} hours" if amount >= 1 else f"{amount:.2f} hours"


def hours(params: Params, rates: Rates) -> Iterator[str]:
    """The lines about time."""
    if rates.measured is not None:
        yield from _by_measured_steps(params, rates.measured)
    yield from _by_rates(params, rates)


def _measured_hours(params: Params, path: Path) -> tuple[float, float]:
    """Hours of training, and of the episodes outside of it at most."""
    table = _measured(path)
    step = sum(_median(table[f"seconds/{part}"]) for part in PARTS)
    return params.training.steps * step / 3600, _other_steps(params) / _pace(params, table) / 3600


def _pace(params: Params, table: polars.DataFrame) -> float:
    """Environment steps a second. Processes play in parallel, unless an engine outside serves all: then one
    of them plays."""
    return _median(table[PACE]) * (1 if params.engine.shared else params.processes)


def _other_steps(params: Params) -> int:
    """Environment steps outside of training, at most."""
    return sum(
        amount.environment_steps
        for part, amount in work(params).items()
        if part != "train_policy" and amount.tokens
    )


def _by_measured_steps(params: Params, path: Path) -> Iterator[str]:
    table, seconds = _measured(path), {}
    for part in PARTS:
        seconds[part] = _median(table[f"seconds/{part}"])
    step, steps = sum(seconds.values()), params.training.steps
    shares = ", ".join(f"{part} {amount:.1f}" for part, amount in seconds.items())
    pace, others = _pace(params, table), _other_steps(params)
    yield f"time, by {len(table)} measured steps of {path}:"
    yield f"  training: {steps * step / 3600:.1f} hours, {steps} steps of {step:.1f} seconds ({shares})"
    yield (
        f"  other episodes, at most: {others / pace / 3600:.1f} hours, {others:,} environment steps at "
        f"{pace:.1f} a second"
    )


def _measured(path: Path) -> polars.DataFrame:
    """The measured steps but the first; ``ParamsError`` if the file is not a training's."""
    wanted = [*(f"seconds/{part}" for part in PARTS), PACE]
    try:
        table = polars.read_csv(path, infer_schema_length=None)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise ParamsError(f"--measured: {path} cannot be read as a table: {error}") from error
    missing = [name for name in wanted if name not in table.columns]
    if missing or table.is_empty():
        raise ParamsError(
            f"--measured: {path} is not a training's results/training.csv: it has "
            f"{'no column ' + missing[0] if missing else 'no step'}"
        )
    return table.select(wanted)[1 if len(table) > 1 else 0 :]


def _median(column: polars.Series) -> float:
    median = column.median()
    assert isinstance(median, float)
    return median


def _stated(params: Params, rates: Rates) -> list[tuple[str, float | None, str]]:
    """Each kind of work, its hours (None without its rate), and the option that gives the rate."""
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
        ("sampling", sampled / _engines(params), rates.sampling, "--sampling-rate"),
        ("training", training / processes, rates.training, "--training-rate"),
        *(
            (f"scoring {reason}", tokens / processes, forward, "--training-rate")
            for reason, tokens in scored(params).items()
        ),
        ("environment", acted, per_second, "--step-ms"),
    ]
    return [
        (name, amount / rate / 3600 if rate else None, option)
        for name, amount, rate, option in amounts
        if amount
    ]


def _by_rates(params: Params, rates: Rates) -> Iterator[str]:
    processes, stated = params.processes, _stated(params, rates)
    share = f"shared by {processes} processes" if processes > 1 else "in one process"
    yield f"time, {share}, at most, from the stated rates alone:"
    for name, takes, option in stated:
        yield f"  {name}: unknown without {option}" if takes is None else f"  {name}: {takes:.1f} hours"
    took = [takes for _, takes, _ in stated]
    if None not in took:
        yield f"  one after the other: {sum(filter(None, took)):.1f} hours"


def _engines(params: Params) -> int:
    """How many engines sample at once: one in every process, or the servers."""
    if isinstance(params.engine, ServerParameters):
        return len(params.engine.urls)
    return 1 if params.engine.shared else params.processes
