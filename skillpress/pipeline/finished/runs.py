"""``skillpress runs``: every finished run with its method and its results.

    skillpress runs                                   of this lab: results, workspaces, records of studies
    skillpress runs workspaces/grpo-seed0 studies/study  of these folders alone
    skillpress runs --csv runs.csv                    the same as a table, a line per method

Runs that differ only in the seed are one line. Runs are compared with those that have the same environment,
tasks, start and evaluation. A method is called by all of its parameters, as in ``skillpress tables``; the
first run of a row says the settings of training, and a run with other settings has them in its name. A rate
has its 95% interval over tasks, which holds for these policies, and with several seeds the interval over
seeds and tasks, which holds for other trainings too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import polars as pl

from skillpress.core.arguments import CommandParser
from skillpress.core.errors import ParamsError, StorageError, UserError
from skillpress.core.intervals import wilson
from skillpress.core.lab import lab_file
from skillpress.core.moved import as_recorded
from skillpress.core.storage import write_text
from skillpress.evaluation.paper.methods import in_words, methods
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings
from skillpress.evaluation.study.outcomes import scores
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.pipeline.files import RESULTS, START, TRAINED
from skillpress.pipeline.finished.run import RunsError, common, read_unchanged
from skillpress.pipeline.reproduce.workspace import FOLDER as WORKSPACES
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.record import outcomes_of
from skillpress.pipeline.study.store import RUNS, read_record

MARKS = PARAMETERS, EVALUATION = Path("params.yaml"), RESULTS / "evaluation.json"
"""The files that a finished run has."""
RECORDS = f"studies/*/{RUNS}", f"docs/*/{RUNS}"
"""Folders with records of studies; before ``studies`` existed, the default was ``docs``."""


@dataclass(frozen=True)
class KnownRun:
    """A finished run, wherever it is kept."""

    where: str
    """The folder of its results or of the study's record."""
    params: Params
    outcomes: pl.DataFrame
    """A row per test task: ``task_id``, and per policy the steps at which its episodes were won, 0 if not."""

    def scores(self, policy: str, outcome: str) -> pl.DataFrame:
        """``task_id`` and ``score`` of a policy."""
        won_at = self.outcomes.select("task_id", won_at=policy)
        return scores(won_at, outcome, self.params.environment.max_steps, self.params.evaluation.votes)


@dataclass(frozen=True)
class Rate:
    """A share of successes, the mean of the seeds' means."""

    mean: float
    low: float
    """Wilson's 95% interval over tasks."""
    high: float
    trainings_low: float | None
    """The 95% interval over seeds and tasks; None for a single seed."""
    trainings_high: float | None
    tasks: int
    """Number of different tasks."""


@dataclass(frozen=True)
class MethodLine:
    """The seeds of one method."""

    environment: str
    setting: str
    """How its group's parameters differ from those of the environment's first group; empty for the first."""
    method: str
    """The method according to the run's parameters."""
    seeds: tuple[int, ...]
    where: tuple[str, ...]
    start: Rate
    """Pass@1 of the policy that training started from."""
    trained: Rate
    """Pass@1 of the trained policy."""
    votes: int
    majority: Rate | None
    """SC@k of the trained policy, with k = ``votes``; None if k is 1."""


def places(root: Path) -> list[Path]:
    """The folders of a lab that have finished runs: its own, its workspaces', and its studies' records."""
    folders = [root, *sorted((root / WORKSPACES).glob("*"))]
    found = [folder for folder in folders if all((folder / file).is_file() for file in MARKS)]
    return [*found, *(path.parent for pattern in RECORDS for path in sorted(root.glob(pattern)))]


def known_runs(folder: Path) -> tuple[list[KnownRun], list[str]]:
    """The runs of a folder of results or of a study's record, and why a record's other runs cannot be read.

    Raises:
        UserError: there are none, or the files are damaged.
    """
    where = str(folder.relative_to(ROOT)) if folder.is_relative_to(ROOT) else str(folder)
    if (folder / RUNS).is_file():
        return _recorded(folder, where)
    if not (folder / EVALUATION).is_file():
        raise RunsError(
            f"{folder}: holds neither {EVALUATION} (a finished run) nor {RUNS} (a study's record); "
            "`skillpress run` makes the first"
        )
    run = read_unchanged(folder)
    return [KnownRun(where, run.params, outcomes_of(run))], []


def _recorded(folder: Path, where: str) -> tuple[list[KnownRun], list[str]]:
    record, defaults = read_record(folder), read_yaml(lab_file(str(PARAMETERS)))
    outcomes = record.outcomes.partition_by("id", as_dict=True)
    found, unread = [], []
    for run in record.runs:
        source = f"{folder / RUNS}: {run.id}"
        try:
            params = check_params(merge(defaults, as_recorded(run.params, source)), source)
        except ParamsError as error:  # recorded by another version
            unread.append(str(error))
        else:
            found.append(KnownRun(where, params, outcomes[(run.id,)]))
    return found, unread


def method_lines(runs: Sequence[KnownRun]) -> Iterator[MethodLine]:
    """A line per method and setting, by environment."""
    groups: dict[str, dict[str, list[KnownRun]]] = {}
    for run in runs:
        name = run.params.environment.name
        groups.setdefault(name, {}).setdefault(json.dumps(common(run.params)), []).append(run)
    for of_environment in groups.values():
        first = common(next(iter(of_environment.values()))[0].params)
        for setting, group in of_environment.items():
            yield from _lines_of(group, _difference(first, json.loads(setting)))


def _lines_of(group: Sequence[KnownRun], setting: str) -> Iterator[MethodLine]:
    """The lines of runs with one environment, start and evaluation."""
    seeds: dict[str, dict[int, KnownRun]] = {}
    places: dict[str, dict[str, None]] = {}
    for run, called in zip(group, methods([run.params for run in group]), strict=True):
        seeds.setdefault(called.label, {}).setdefault(
            run.params.seed, run
        )  # a kept workspace is recorded too
        places.setdefault(called.label, {})[run.where] = None
    for label, found in seeds.items():
        params, those = group[0].params, [found[seed] for seed in sorted(found)]
        yield MethodLine(
            environment=params.environment.title,
            setting=setting,
            method=label,
            seeds=tuple(sorted(found)),
            where=tuple(places[label]),
            start=_rate(those, START, "pass_at_1"),
            trained=_rate(those, TRAINED, "pass_at_1"),
            votes=(votes := params.evaluation.votes),
            majority=_rate(those, TRAINED, "sc_at_k") if votes > 1 else None,
        )


def _rate(runs: Sequence[KnownRun], policy: str, outcome: str) -> Rate:
    found = Scores.of([run.scores(policy, outcome) for run in runs])
    interval = wilson(min(found.mean(), 1.0), found.effective_tasks())  # rounding may lift a mean above 1
    others = over_trainings(found, shares=True)
    return Rate(
        mean=found.mean(),
        low=interval.low,
        high=interval.high,
        trainings_low=others.low if others else None,
        trainings_high=others.high if others else None,
        tasks=found.tasks,
    )


def _difference(first: Mapping[str, object], other: Mapping[str, object]) -> str:
    changed = [
        f"{key} {in_words(other[key]) if key in other else 'absent'}"
        for key in dict.fromkeys((*other, *first))
        if key not in first or first[key] != other.get(key)
    ]
    return ", ".join(changed)


def text(lines: Sequence[MethodLine]) -> Iterator[str]:
    """The lines as printed."""
    for (environment, setting), group in groupby(lines, lambda line: (line.environment, line.setting)):
        yield f"{environment}{f' with {setting}' if setting else ''}"
        for line in group:
            figures = f"Pass@1 {in_percent(line.trained)}, start {in_percent(line.start, others=False)}"
            if line.majority is not None:
                figures += f", SC@{line.votes} {in_percent(line.majority)}"
            first, last, count = line.seeds[0], line.seeds[-1], len(line.seeds)
            consecutive = count > 2 and last - first == count - 1
            named = f"{first} to {last}" if consecutive else ", ".join(map(str, line.seeds))
            seeds = f"seed{'s' if count > 1 else ''} {named}"
            yield f"  {line.method}"
            yield f"      {figures}; {line.trained.tasks:,} tasks, {seeds}; {', '.join(line.where)}"


def in_percent(rate: Rate, others: bool = True) -> str:
    """The rate and its intervals, such as ``81.2% (80.1 to 82.3; other trainings 79.0 to 83.1)``."""
    inner = f"{100 * rate.low:.1f} to {100 * rate.high:.1f}"
    if others and rate.trainings_low is not None and rate.trainings_high is not None:
        inner += f"; other trainings {100 * rate.trainings_low:.1f} to {100 * rate.trainings_high:.1f}"
    return f"{rate.mean:.1%} ({inner})"


def table(lines: Sequence[MethodLine]) -> pl.DataFrame:
    """The lines as a table, rates in [0, 1]; ``start_low`` is a figure of ``start``."""
    rows = []
    for line in lines:
        row = asdict(line)
        rates = {name: row.pop(name) or {} for name in ("start", "trained", "majority")}
        row |= {"seeds": " ".join(map(str, line.seeds)), "where": " ".join(line.where)}
        figures = ("mean", "low", "high", "trainings_low", "trainings_high")
        row |= {f"{name}_{figure}": rate.get(figure) for name, rate in rates.items() for figure in figures}
        rows.append(row | {"tasks": line.trained.tasks})
    return pl.DataFrame(rows, infer_schema_length=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "places",
        type=Path,
        nargs="*",
        metavar="RUN|RECORD",
        help="folder of a finished run, or of a study's record (default: all of this lab)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table there, rates in [0, 1]")
    parser.add_run_code()
    chosen = parser.parse_args(arguments)
    runs, unread = read_places(chosen.places) if chosen.places else read_lab(ROOT)
    lines = list(method_lines(runs))
    for line in text(lines):
        print(line)
    for reason in unread:
        print(f"not read: {reason}")
    if chosen.csv is not None:
        try:
            write_text(chosen.csv, table(lines).write_csv())
        except (OSError, StorageError) as error:
            raise UserError(f"--csv {chosen.csv}: {error}") from error
    print(f"runs: {len(runs)} finished runs of {len(lines)} methods")
    return 0


def read_places(folders: Sequence[Path]) -> tuple[list[KnownRun], list[str]]:
    """The runs of folders that were named; ``UserError`` if one has none."""
    found = [known_runs(folder) for folder in folders]
    return [run for runs, _ in found for run in runs], [reason for _, unread in found for reason in unread]


def read_lab(root: Path) -> tuple[list[KnownRun], list[str]]:
    """The runs of a lab, and why others cannot be read; ``UserError`` if there are none."""
    runs: list[KnownRun] = []
    unread: list[str] = []
    for folder in places(root):
        try:
            found, skipped = known_runs(folder)
        except UserError as error:
            found, skipped = [], [str(error)]
        runs, unread = runs + found, unread + skipped
    if not runs and not unread:
        raise RunsError(
            f"{root}: holds no finished run, neither in {WORKSPACES}/ nor in {RECORDS};  `skillpress run` "
            "makes one, and folders elsewhere can be named"
        )
    return runs, unread
