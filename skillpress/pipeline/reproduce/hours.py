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

PARTS = ("rollout", "shaping", "update")
"""The parts of a training step whose seconds add up to the step's."""
PACE = "environment_steps_per_second"


def hours(params: Params, rates: Rates) -> Iterator[str]:
    """The lines about time."""
    if rates.measured is not None:
        yield from _by_measured_steps(params, rates.measured)
    yield from _by_rates(params, rates)


def _by_measured_steps(params: Params, path: Path) -> Iterator[str]:
    table, seconds = _measured(path), {}
    for part in PARTS:
        seconds[part] = _median(table[f"seconds/{part}"])
    step, steps = sum(seconds.values()), params.training.steps
    shares = ", ".join(f"{part} {amount:.1f}" for part, amount in seconds.items())
    # Processes play in parallel, unless an engine outside serves all: one of them then plays.
    pace = _median(table[PACE]) * (1 if params.engine.shared else params.processes)
    others = sum(
        amount.environment_steps
        for part, amount in work(params).items()
        if part != "train_policy" and amount.tokens
    )
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


def _by_rates(params: Params, rates: Rates) -> Iterator[str]:
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
    share = f"shared by {processes} processes" if processes > 1 else "in one process"
    yield f"time, {share}, at most, from the stated rates alone:"
    amounts = [each for each in amounts if each[1]]
    took = [amount / rate / 3600 if rate else None for _, amount, rate, _ in amounts]
    for (name, _, _, option), takes in zip(amounts, took, strict=True):
        yield f"  {name}: unknown without {option}" if takes is None else f"  {name}: {takes:.1f} hours"
    if all(rate for _, _, rate, _ in amounts):
        yield f"  one after the other: {sum(filter(None, took)):.1f} hours"


def _engines(params: Params) -> int:
    """How many engines sample at once: one in every process, or the servers."""
    if isinstance(params.engine, ServerParameters):
        return len(params.engine.urls)
    return 1 if params.engine.shared else params.processes
