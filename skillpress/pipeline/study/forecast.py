"""How long the missing runs will take, estimated from the recorded ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from statistics import mean

from skillpress.pipeline.study.record import RecordedRun
from skillpress.pipeline.study.runs import PlannedRun


def seconds_of(run: PlannedRun, recorded: Sequence[RecordedRun]) -> float | None:
    """The mean time of recorded runs of this benchmark, if possible only those of the run's method; None if
    the benchmark has none. Runs that continued an earlier attempt are left out."""
    whole = [other for other in recorded if other.benchmark == run.benchmark and not other.resumed]
    alike = [other.wall_seconds for other in whole if other.method == run.method]
    times = alike or [other.wall_seconds for other in whole]
    return mean(times) if times else None


def remaining(missing: Sequence[PlannedRun], recorded: Sequence[RecordedRun], at_once: int) -> float | None:
    """Seconds until all missing runs are done; None if a benchmark has no recorded run."""
    times = [seconds_of(run, recorded) for run in missing]
    known = [time for time in times if time is not None]
    return sum(known) / at_once if len(known) == len(times) else None


def describe(
    missing: Sequence[PlannedRun], recorded: Sequence[RecordedRun], planned: int, at_once: int, now: datetime
) -> Iterator[str]:
    """Lines with the number of runs, then the share of the time of each benchmark with missing runs."""
    left = remaining(missing, recorded, at_once)
    until = f", until {now + timedelta(seconds=left):%a %H:%M}" if left else ""
    yield (
        f"{planned - len(missing)} of {planned} runs are recorded; "
        f"{in_words(left)} to go, {at_once} at once{until}"
    )
    for benchmark, count in Counter(run.benchmark for run in missing).items():
        mine = [run for run in missing if run.benchmark == benchmark]
        one = [time for run in mine if (time := seconds_of(run, recorded)) is not None]
        each = f", {in_words(mean(one))} each" if one else ""
        yield f"  {benchmark}: {count} missing{each}, {in_words(remaining(mine, recorded, at_once))} to go"


def in_words(seconds: float | None) -> str:
    """Text such as ``3 h 05 min``; ``an unknown time`` for None."""
    if seconds is None:
        return "an unknown time"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{seconds / 60:.1f} min"
