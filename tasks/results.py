"""What an experiment left in results/, read back for the report and for comparing experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from skillpress.evaluation import Comparison, EvaluationSummary
from skillpress.evaluation.weights import Kept
from skillpress.report import Curve, PolicyResult, Scaling
from skillpress.storage import StorageError, read_json

BASELINES = {"explorer": "random explorer", "start": "imitation start"}
"""Policies of ``evaluation.json`` that no method trained, to their names in tables."""
TRAINED = "trained"


def policy_results(results: Path, method: str, seed: int) -> list[PolicyResult]:
    """The baselines and the trained policy, which ``method`` trained.

    Raises:
        StorageError: evaluation.json is missing or damaged.
    """
    policies = _evaluation(results)["policies"]
    kept = checkpoint(results)
    weights = f"{kept.rule} checkpoint (step {kept.step})"
    return [
        PolicyResult(
            BASELINES.get(name, method),
            EvaluationSummary.from_json(values),
            seed,
            baseline=name in BASELINES,
            checkpoint="" if name in BASELINES else weights,
        )
        for name, values in policies.items()
    ]


def comparisons(results: Path) -> dict[str, Comparison]:
    """``"trained against start"`` to the paired tests.

    Raises:
        StorageError: evaluation.json is missing or damaged.
    """
    return TypeAdapter(dict[str, Comparison]).validate_python(_evaluation(results)["comparisons"])


def checkpoint(results: Path) -> Kept:
    """Which of a training run's weights the trained policy's are, and by which rule.

    Raises:
        StorageError: evaluation.json is missing or damaged.
    """
    values = _evaluation(results)["checkpoint"]
    try:
        return Kept(**values)
    except TypeError as error:
        raise StorageError(
            f"{results / 'evaluation.json'}: checkpoint is {values!r}, this version writes rule and step; "
            "delete it and run again"
        ) from error


def curves(results: Path, method: str, seed: int) -> list[Curve]:
    """The learning curve; none when there was no training.

    Raises:
        StorageError: training.csv is missing or damaged.
    """
    path = results / "training.csv"
    try:
        frame = pl.read_csv(path, infer_schema_length=None)
    except pl.exceptions.NoDataError:
        return []
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}); run the stage that makes it") from error
    return [Curve(method, frame, seed)] if len(frame) else []


def scaling(path: Path) -> Scaling | None:
    """The scaling curve of the dictionary's benchmark; None where it was never measured.

    Raises:
        StorageError: the file is damaged.
    """
    if not path.exists():
        return None
    values = read_json(path)
    try:
        measured = values["measured"]["scaling"]
        return Scaling(pl.DataFrame(values["scaling"]), measured["machine"], measured["date"])
    except (KeyError, TypeError) as error:
        raise StorageError(f"{path}: not the benchmark's result ({error}); measure it again") from error


def _evaluation(results: Path) -> dict[str, Any]:
    values = read_json(results / "evaluation.json")
    if not isinstance(values, dict) or {"checkpoint", "policies", "comparisons"} - values.keys():
        raise StorageError(
            f"{results / 'evaluation.json'}: not an evaluation of this version; delete it and run again"
        )
    return values
