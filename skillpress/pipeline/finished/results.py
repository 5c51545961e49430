"""An experiment's results/ in the form that the report and the comparison page show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json
from skillpress.measure.analysis.failures import failure_figures, kinds_of_episodes
from skillpress.measure.evaluation import Comparison, EvaluationSummary
from skillpress.measure.paper import environment_figures
from skillpress.pipeline.files import EXPLORER, START, TRAINED
from skillpress.pipeline.finished.run import FinishedRun, read_evaluation
from skillpress.show.report.data import Curve, PolicyResult, Scaling

BASELINES = {EXPLORER: "random explorer", START: "imitation start"}
"""Policies without training, to their names on pages."""


def policy_results(run: FinishedRun, method: str) -> list[PolicyResult]:
    """The baselines and the trained policy, called ``method``; ``StorageError`` for a damaged file."""
    policies = read_evaluation(run.results)["policies"]
    weights = f"{run.checkpoint.rule} checkpoint (step {run.checkpoint.step})"
    behavior = environment_figures(run.environment).behavior
    try:
        summaries = {name: EvaluationSummary.from_json(values) for name, values in policies.items()}
    except ValidationError as error:
        raise _foreign(run.results, "policies", error) from error
    return [
        PolicyResult(
            method=BASELINES.get(name, method),
            summary=summary,
            seed=run.seed,
            baseline=name in BASELINES,
            environment_behavior=behavior(steps),
            failures=failure_figures(kinds_of_episodes(steps)),
            ran="" if name in BASELINES else run.method.label,
            checkpoint="" if name in BASELINES else weights,
        )
        for name, summary in summaries.items()
        for steps in [run.steps(name)]
    ]


def comparisons(results: Path) -> dict[str, Comparison]:
    """``"trained against start"`` to the paired tests; ``StorageError`` for a damaged file."""
    try:
        return TypeAdapter(dict[str, Comparison]).validate_python(read_evaluation(results)["comparisons"])
    except ValidationError as error:
        raise _foreign(results, "comparisons", error) from error


def _foreign(results: Path, part: str, error: ValidationError) -> StorageError:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, (part, *first["loc"])))
    return StorageError(
        f"{results / 'evaluation.json'}: {place}: {first['msg']}; not what this version writes; let the "
        "stage evaluate_policy run again"
    )


def curves(run: FinishedRun, method: str) -> list[Curve]:
    """The learning curve, none without training; ``StorageError`` for a damaged file."""
    path = run.results / "training.csv"
    try:
        frame = pl.read_csv(path, infer_schema_length=None)
    except pl.exceptions.NoDataError:
        return []
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}); run the stage that makes it") from error
    return [Curve(method, frame, run.seed)] if len(frame) else []


def scaling(path: Path) -> Scaling | None:
    """The scaling curve of the dictionary's benchmark, if measured; ``StorageError`` if damaged."""
    if not path.exists():
        return None
    values = read_json(path)
    try:
        measured = values["measured"]["scaling"]
        return Scaling(pl.DataFrame(values["scaling"]), measured["machine"], measured["date"])
    except (KeyError, TypeError) as error:
        raise StorageError(f"{path}: not the benchmark's result ({error}); measure it again") from error


ADVICE = Path("docs/training_made_it_worse.md")
"""The page with advice, in the repository and in every workspace."""


@dataclass(frozen=True)
class Effect:
    """The trained policy against the policy that training started from, on the same held-out tasks."""

    difference: float
    """Difference of the success rates, in [-1, 1]."""
    low: float
    """Lower end of the 95% interval over tasks, for these two policies."""
    high: float

    @property
    def worse(self) -> bool:
        """Whether success fell by more than chance would explain."""
        return self.high < 0

    @property
    def sentence(self) -> str:
        """Text such as ``training changed success by -9.0 points (-14.5 to -3.5)``, with its conclusion."""
        interval = f"({_points(self.low)} to {_points(self.high)})"
        said = f"training changed success by {_points(self.difference)} points {interval}"
        if self.worse:
            return f"{said}: it made the policy worse"
        return said if self.low > 0 else f"{said}: these tasks tell no difference"


def effect(found: Mapping[str, Comparison], training_steps: int) -> Effect | None:
    """The effect by the paired tests of an evaluation; None without training."""
    compared = found.get(f"{TRAINED} against {START}")
    if compared is None or not training_steps:
        return None
    whole = compared.tests[-1]
    return Effect(whole.difference, whole.low, whole.high)


def effect_line(results: Path, training_steps: int) -> str | None:
    """The console's line about a finished experiment; None without training."""
    found = effect(comparisons(results), training_steps)
    if found is None:
        return None
    return f"{found.sentence}; {ADVICE} says what to try" if found.worse else found.sentence


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
