"""The committed record of a study: ``runs.json``, ``outcomes.parquet``, and ``facts.parquet`` if its plan has
outcomes about facts.

The JSON file has a line per run, so that git shows which were added. A run counts when its line exists: its
outcomes are written first, and outcomes without a line come from a killed process and are ignored. The
Parquet file is sorted by task, which keeps a hundred runs in a few megabytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import ParamsError, StorageError
from skillpress.core.storage import atomic_path, make_folder, read_schema, write_text
from skillpress.experiment.params import read_yaml
from skillpress.pipeline.files import POLICIES
from skillpress.pipeline.reproduce.lock import exclusive
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.facts import FACT_SCHEMA
from skillpress.pipeline.study.record import RecordedRun
from skillpress.pipeline.study.runs import DEFAULTS, PlannedRun, resolved

FOLDER = Path("studies/study")
RUNS = "runs.json"
OUTCOMES = "outcomes.parquet"
FACTS = "facts.parquet"
SCHEMA = "skillpress study 2"
OUTCOME_SCHEMA = pl.Schema(
    {"id": pl.String, "task_id": pl.String, "kind": pl.String}
    | {policy: pl.List(pl.UInt8) for policy in POLICIES}
)
FACTS_SCHEMA = pl.Schema([("id", pl.String()), *FACT_SCHEMA.items()])


@dataclass(frozen=True)
class Record:
    """The recorded runs."""

    runs: tuple[RecordedRun, ...] = ()
    outcomes: pl.DataFrame = field(default_factory=OUTCOME_SCHEMA.to_frame)
    """Rows of ``outcomes_of``, with the ``id`` of their run."""
    facts: pl.DataFrame = field(default_factory=FACTS_SCHEMA.to_frame)
    """Rows of ``facts_of``, with the ``id`` of their run."""

    def matching(self, planned: Sequence[PlannedRun], root: Path = ROOT) -> dict[str, RecordedRun]:
        """For each planned run's name, a record with its parameters and seed, from any code revision."""
        known, defaults = {}, read_yaml(root / DEFAULTS)
        for run in self.runs:
            try:
                known[_key(run.benchmark, resolved(run.params, defaults))] = run
            except ParamsError:  # this version does not know all parameters of that run
                continue
        keys = {run.name: _key(run.benchmark, run.params) for run in planned}
        return {name: known[key] for name, key in keys.items() if key in known}


def _key(benchmark: str, params: object) -> str:
    return f"{benchmark} {json.dumps(params, sort_keys=True)}"


def read_record(folder: Path) -> Record:
    """The record, empty if there is none yet; ``StorageError`` if a file is damaged or missing."""
    path = folder / RUNS
    if not path.exists():
        return Record()
    content = read_schema(path, SCHEMA, "restore it from git")
    try:
        runs = TypeAdapter(tuple[RecordedRun, ...]).validate_python(content["runs"])
        outcomes = pl.read_parquet(folder / OUTCOMES, schema=OUTCOME_SCHEMA)
        facts = _read_facts(folder)
    except (ValidationError, KeyError, OSError, pl.exceptions.PolarsError) as error:
        raise StorageError(
            f"{folder}: not a record of this version ({error}); restore it from git"
        ) from error
    ids = [run.id for run in runs]
    if missing := set(ids) - set(outcomes["id"].unique()):
        raise StorageError(f"{folder / OUTCOMES}: no outcomes of {min(missing)}; restore it from git")
    there = pl.col("id").is_in(ids)
    return Record(runs, outcomes.filter(there), facts.filter(there))


def _read_facts(folder: Path) -> pl.DataFrame:
    path = folder / FACTS
    return pl.read_parquet(path, schema=FACTS_SCHEMA) if path.exists() else FACTS_SCHEMA.to_frame()


def add(
    folder: Path, run: RecordedRun, outcomes: pl.DataFrame, facts: pl.DataFrame | None = None
) -> RecordedRun:
    """Add a finished run to the record; returns it with its id there.

    Args:
        facts: rows of ``facts_of``; None or no rows if the plan asks for none.

    Raises:
        LockTimeoutError: another process is writing and does not end.
        StorageError: the record is damaged, or the disk is full; the record is unchanged.
    """
    make_folder(folder)
    with exclusive(folder / ".lock", "the study's record"):
        record = read_record(folder)
        run = replace(run, id=_free(run.id, {other.id for other in record.runs}))
        runs = (*record.runs, run)
        added = outcomes.select(pl.lit(run.id).alias("id"), pl.all()).select(OUTCOME_SCHEMA.names())
        every = pl.concat([record.outcomes, added.match_to_schema(OUTCOME_SCHEMA)])
        order = pl.DataFrame([(r.id, r.benchmark, r.seed) for r in runs], ["id", "of", "seed"], orient="row")
        every = every.join(order, on="id").sort("of", "seed", "task_id", "id").select(OUTCOME_SCHEMA.names())
        with atomic_path(folder / OUTCOMES) as temporary:
            every.write_parquet(temporary, compression="zstd", compression_level=19)
        if facts is not None and facts.height:
            added = facts.select(pl.lit(run.id).alias("id"), pl.all()).match_to_schema(FACTS_SCHEMA)
            stated = pl.concat([record.facts, added]).sort("fact", "policy", "task_id", "id")
            with atomic_path(folder / FACTS) as temporary:
                stated.write_parquet(temporary, compression="zstd", compression_level=19)
        lines = ",\n".join(json.dumps(asdict(r), separators=(",", ":"), allow_nan=False) for r in runs)
        write_text(folder / RUNS, f'{{"schema": "{SCHEMA}", "runs": [\n{lines}\n]}}\n')
    return run


def _free(name: str, taken: set[str]) -> str:
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found
