"""An experiment's results/ in the form that the report and the comparison page show."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import TypeAdapter, ValidationError

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json
from skillpress.evaluation.analysis.failures import failure_figures, kinds_of_episodes
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.statistics import Comparison, EvaluationSummary
from skillpress.pipeline.files import EXPLORER, START
from skillpress.pipeline.finished.run import FinishedRun, read_evaluation
from skillpress.reports.report.data import Curve, PolicyResult, Scaling

BASELINES = {EXPLORER: "random explorer", START: "imitation start"}
"""The names of policies without training on pages."""


def policy_results(run: FinishedRun, method: str) -> list[PolicyResult]:
    """The baselines and the trained policy, called ``method``; ``StorageError`` for a damaged file."""
    weights = f"{run.checkpoint.rule} checkpoint (step {run.checkpoint.step})"
    behavior = environment_figures(run.environment).behavior
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
        for name, summary in summaries(run.results).items()
        for steps in [run.steps(name)]
    ]


def summaries(results: Path) -> dict[str, EvaluationSummary]:
    """The summary of each policy in ``results/evaluation.json``. Raises ``StorageError`` if damaged."""
    policies = read_evaluation(results)["policies"]
    try:
        return {name: EvaluationSummary.from_json(values) for name, values in policies.items()}
    except ValidationError as error:
        raise _foreign(results, "policies", error) from error


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
