"""The plan and the record together: which runs are there, and what they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from docs.words import percent, points
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import OverTrainings, over_trainings
from skillpress.evaluation.study.outcomes import measured as measured_facts
from skillpress.evaluation.study.outcomes import of_class, scores
from skillpress.evaluation.study.plan import Claim, Plan, divided, measure_of, read_plan
from skillpress.pipeline.files import EXPLORER, START, TRAINED
from skillpress.pipeline.study.facts import FACT_SCHEMA
from skillpress.pipeline.study.record import RecordedRun
from skillpress.pipeline.study.runs import planned_runs
from skillpress.pipeline.study.store import Record, read_record
from studies.statistics.compression import MEASURES, Prediction, gaps, predict
from studies.statistics.contrasts import ClaimEvidence, Pair, judged, measured

FLOORS = {EXPLORER: "Random explorer", START: "Imitation start"}


@dataclass(frozen=True)
class Level:
    """What a method came to, or gained, on a benchmark or on a class of its tasks; the mean over seeds."""

    mean: float
    over_trainings: OverTrainings | None
    per_seed: tuple[float, ...]
    """Each seed's mean over its tasks."""
    tasks: int
    """Number of tasks of one seed."""

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return len(self.per_seed)

    def in_percent(self) -> str:
        """The level, such as ``82.5 (80.9 to 84.1)``; without an interval if only a single seed was run."""
        found = self.over_trainings
        return percent(self.mean, *((found.low, found.high) if found else ()))

    def in_points(self) -> str:
        """The level, such as ``+1.5 (+0.2 to +2.8)``; without an interval if only a single seed was run."""
        found = self.over_trainings
        return points(self.mean, *((found.low, found.high) if found else ()))


@dataclass(frozen=True)
class Results:
    """What the page is made from."""

    plan: Plan
    planned: Mapping[str, int]
    """Benchmark to the number of runs that the plan asks for."""
    runs: Mapping[tuple[str, str], Mapping[int, RecordedRun]]
    """Benchmark and method to the runs that are there, by seed."""
    outcomes: Mapping[str, pl.DataFrame]
    """Id of a run to its rows."""

    facts: Mapping[tuple[str, str, str], pl.DataFrame] = field(default_factory=dict)
    """Id of a run, policy and name of a fact to the rows of ``facts_of``."""
    known: dict[tuple[str, str, str, str], pl.DataFrame] = field(default_factory=dict, compare=False)
    """Scores that were asked for, by the arguments of :meth:`scores`: tables and figures share many."""

    def won_at(self, run: RecordedRun, policy: str, name: str = "") -> pl.DataFrame:
        """``task_id`` and ``won_at`` of a policy on a class of tasks."""
        return of_class(self.outcomes[run.id], name).select("task_id", won_at=policy)

    def scores(self, run: RecordedRun, policy: str, outcome: str, name: str = "") -> pl.DataFrame:
        """A score per task.

        Args:
            name: a class of tasks; empty for the outcome's own.
        """
        key = (run.id, policy, outcome, name)
        if key not in self.known:
            self.known[key] = self._scores(run, policy, outcome, name)
        return self.known[key]

    def _scores(self, run: RecordedRun, policy: str, outcome: str, name: str) -> pl.DataFrame:
        counted, of_outcome = divided(outcome)
        name = name or of_outcome
        fact = measure_of(outcome)
        if fact is not None:
            stated = self.facts.get((run.id, policy, fact), NO_FACTS)
            return measured_facts(stated.join(self.won_at(run, policy, name), on="task_id", how="semi"))
        section, steps = run.params["evaluation"], run.params["environment"]["max_steps"]
        return scores(self.won_at(run, policy, name), counted, steps, section["votes"])

    def level(self, benchmark: str, method: str, outcome: str, name: str = "") -> Level | None:
        """The mean over seeds; of a floor, over the seeds of which any run is there. None without a run."""
        if method in FLOORS:
            runs = self._one_of_each_seed(benchmark)
        else:
            runs = list(self.runs.get((benchmark, method), {}).values())
        policy = method if method in FLOORS else TRAINED
        return _level([self.scores(run, policy, outcome, name) for run in runs], shares=True)

    def gain(self, benchmark: str, method: str, outcome: str) -> Level | None:
        """What training added to the start of the same run, paired by task; None for floors."""
        differences = []
        for run in self.runs.get((benchmark, method), {}).values():
            before, after = (self.scores(run, policy, outcome) for policy in (START, TRAINED))
            gained = (pl.col("score") - pl.col("score_before")).round(12)  # equal gains must tie exactly
            differences.append(
                after.join(before, on="task_id", suffix="_before").select("task_id", score=gained)
            )
        return _level(differences, shares=False)

    def findings(self, question: str, outcome: str | None = None) -> list[ClaimEvidence]:
        """The question's claims, tested and judged, in another outcome than the primary one if so wanted."""
        tests = []
        for claim in self.plan.claims(question):
            entry = self.plan.benchmarks[claim.benchmark]
            pairs = self.pairs(claim, outcome or claim.outcome or entry.outcome)
            silent = sum(not (one.height and other.height) for one, other in pairs)
            margin = claim.margin or entry.margin
            tests.append(measured(claim, pairs, len(entry.seeds) - silent, margin))
        return judged(tests)

    def predictions(self, question: str) -> list[Prediction]:
        """Question 6, by benchmark and measure."""
        rows = {benchmark: gaps(self._probes(benchmark)) for benchmark in self.plan.questions[question].runs}
        return [
            predict(benchmark, measure, found) for benchmark, found in rows.items() for measure in MEASURES
        ]

    @cached_property
    def recorded(self) -> Mapping[str, int]:
        """Benchmark to the number of its planned runs that are there."""
        return {
            benchmark: sum(len(runs) for (name, _), runs in self.runs.items() if name == benchmark)
            for benchmark in self.plan.benchmarks
        }

    def pairs(self, claim: Claim, outcome: str) -> list[Pair]:
        """The scores of both of a claim's methods, of every seed that has both."""
        ones, others = (self.runs.get((claim.benchmark, m), {}) for m in (claim.first, claim.second))
        return [
            (
                self.scores(ones[seed], TRAINED, outcome, claim.of_class),
                self.scores(others[seed], TRAINED, outcome, claim.of_class),
            )
            for seed in sorted(ones.keys() & others.keys())
        ]

    def _one_of_each_seed(self, benchmark: str) -> list[RecordedRun]:
        found: dict[int, RecordedRun] = {}
        for (name, _), runs in self.runs.items():
            if name == benchmark:
                found |= {seed: run for seed, run in runs.items() if seed not in found}
        return [found[seed] for seed in sorted(found)]

    def _probes(self, benchmark: str) -> pl.DataFrame:
        probed = [
            pl.DataFrame(run.probes).with_columns(run=pl.lit(run.id), seed=pl.lit(run.seed)).cast(PROBE_TYPES)
            for (name, _), runs in self.runs.items()
            if name == benchmark
            for run in runs.values()
            if run.probes
        ]
        return pl.concat(probed) if probed else pl.DataFrame(schema=PROBE_TYPES)


def _level(scores: Sequence[pl.DataFrame], *, shares: bool) -> Level | None:
    """The level over the seeds that have tasks; None if none has."""
    played = [found for found in scores if found.height]
    if not played:
        return None
    together = Scores.of(played)
    return Level(
        mean=together.mean(),
        over_trainings=over_trainings(together, shares=shares),
        per_seed=tuple(together.seed_means().tolist()),
        tasks=int(together.tasks_per_seed().max()),
    )


NO_FACTS = FACT_SCHEMA.to_frame()
PROBE_TYPES = pl.Schema(
    {"run": pl.String, "seed": pl.Int64, "split": pl.String, "step": pl.Int64, "corpus": pl.Float64}
    | dict.fromkeys(
        ("success", "steps", "description_length", "certificate", "segments_per_skill"), pl.Float64
    )
)
"""Columns of a probe that question 6 looks at."""


def read_results(root: Path, plan_folder: Path, record_folder: Path) -> Results:
    """The results of a repository.

    Raises:
        UserError: the plan is wrong, or the record damaged.
    """
    return assembled(read_plan(plan_folder), read_record(record_folder), root)


def assembled(plan: Plan, record: Record, root: Path) -> Results:
    """The runs of the plan that the record has. A benchmark whose small policy is not settled (its overlays
    are not there yet) has none."""
    methods = plan.chosen()
    settled = {name: methods[name] for name in methods if _is_settled(plan, name, root)}
    planned = planned_runs(plan, settled, root)
    found = record.matching(planned, root)
    runs: dict[tuple[str, str], dict[int, RecordedRun]] = {}
    for run in planned:
        if run.name in found:
            runs.setdefault((run.benchmark, run.method), {})[run.seed] = found[run.name]
    ids = {run.id for seeds in runs.values() for run in seeds.values()}
    frames: Sequence[pl.DataFrame] = record.outcomes.partition_by("id")
    return Results(
        plan=plan,
        planned={name: len(methods[name]) * len(plan.benchmarks[name].seeds) for name in methods},
        runs=runs,
        outcomes={frame["id"][0]: frame for frame in frames if frame["id"][0] in ids},
        facts=record.facts.partition_by("id", "policy", "fact", as_dict=True),
    )


def _is_settled(plan: Plan, benchmark: str, root: Path) -> bool:
    return all((root / "params" / f"{name}.yaml").is_file() for name in plan.benchmarks[benchmark].base)
