"""What the paper's formulas predict for each cell and method, as ``predict.py`` calculated it.

``predictions.json`` holds ``{cell: {method: {"preference": number, "sign": "+" | "0" | "-"}}}``. The
preference is the reward of the routine less that of the shortcut at the mixture in which training starts. The
sign is the effect on the share of routines that follows from it, compared with plain GRPO.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from docs.committed import read_committed
from docs.words import NONE
from skillpress.core.sections import Section
from skillpress.evaluation.study.plan import Claim, Expectation, Plan

FILE = "predictions.json"
BASELINE = "grpo"
"""The method whose share of routines a prediction is compared with."""
MEANING: Mapping[str, Expectation] = {"+": "higher", "0": "same", "-": "lower"}


class Prediction(Section):
    """A method's prediction in one cell."""

    preference: float
    """Reward of the routine less that of the shortcut at the start's mixture, in units of reward."""
    sign: Literal["+", "0", "-"]
    by_share: dict[str, float] = Field(default={})
    """The share of routines to the preference at that share; empty if only the start's was calculated."""


Predictions = Mapping[str, Mapping[str, Prediction]]
"""Cell to method to prediction."""


def read_predictions(folder: Path, name: str = FILE) -> Predictions:
    """The committed predictions, empty if there is no file yet; ``StorageError`` for a wrong one."""
    return read_committed(
        folder / name,
        dict[str, dict[str, Prediction]],
        'it holds {cell: {method: {"preference": number, "sign": "+", "0" or "-"}}}',
    )


def predicted(claim: Claim, known: Predictions) -> Prediction | None:
    """The prediction that a claim is about: its second method's, compared with the baseline. None for claims
    that compare with another method, or if nothing is predicted."""
    if claim.first != BASELINE:
        return None
    return known.get(claim.benchmark, {}).get(claim.second)


def in_table(known: Prediction | None) -> str:
    """A preference as tables show it: a 0 predicts no sign."""
    return NONE if known is None else f"{known.preference:+.2f}" if known.sign != "0" else "0"


def disagreements(plan: Plan, known: Predictions) -> list[str]:
    """A line for every claim whose expectation is not its prediction's sign."""
    lines = [
        f"{claim.name}: the plan expects `{claim.expect}`, the prediction's sign is `{found.sign}`"
        for question in plan.questions
        for claim in plan.claims(question)
        if (found := predicted(claim, known)) is not None
        and claim.expect not in ("differs", MEANING[found.sign])
    ]
    return list(dict.fromkeys(lines))  # a claim may be made about several outcomes


def not_run(plan: Plan, known: Predictions) -> dict[str, list[str]]:
    """Method to the cells in which it is predicted and the plan does not run it."""
    runs = plan.chosen()
    found: dict[str, list[str]] = {}
    for cell, methods in known.items():
        for method in methods:
            if method not in runs.get(cell, []):
                found.setdefault(method, []).append(cell)
    return found
