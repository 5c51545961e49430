"""The contents of a finished experiment's report, read from the files that its stages wrote."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from skillpress.measure.analysis.mdl_report import read_phrases
from skillpress.measure.paper import environment_figures
from skillpress.measure.paper.correspondence import correspondences
from skillpress.pipeline.files import DICTIONARY, HISTORY, PHRASES, RESULTS, TRAINED
from skillpress.pipeline.finished.effect import ADVICE, Effect, effect
from skillpress.pipeline.finished.examples import examples
from skillpress.pipeline.finished.paper_tables import tables_or_reason
from skillpress.pipeline.finished.results import comparisons, curves, policy_results, scaling
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.revision import revision
from skillpress.show.report.data import ReportData
from skillpress.skills.dictionary import load_fitted
from skillpress.skills.history import read_history

LIBRARIES = ("skillpress", "torch", "transformers", "deepspeed", "polars", "numpy")
BENCHMARK = Path("benchmarks/results/dictionary.json")
"""Measured once per machine by ``python -m benchmarks.dictionary``, and committed."""


def report_data(run: FinishedRun, episodes_page: str) -> ReportData:
    """The report of the experiment in the working directory.

    Args:
        episodes_page: name of the page with a sample of its episodes, beside the report.

    Raises:
        StorageError: a file of the experiment is missing or damaged.
    """
    dictionary = load_fitted(DICTIONARY)
    tables, notes = tables_or_reason([run])
    compared = comparisons(RESULTS)
    change = effect(compared, run.params.training.steps)
    return ReportData(
        title=f"skillpress: {run.played}, seed {run.seed}",
        verdict="" if change is None else verdict(change),
        advice=f"../{ADVICE}" if change is not None and change.worse else "",
        policies=policy_results(run, TRAINED),
        curves=curves(run, TRAINED),
        comparisons=compared,
        dictionary=dictionary,
        phrases=read_phrases(PHRASES),
        history=read_history(HISTORY),
        library=run.library,
        correspondences=correspondences(
            environment_figures(run.environment).named_skills, run.last_dictionary, run.library
        ),
        scaling=scaling(BENCHMARK),
        examples=examples(run, dictionary),
        paper_tables=tables,
        paper_notes=notes,
        parameters=run.params.model_dump(mode="json"),
        episodes_page=episodes_page,
        versions={"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
        | {name: version(name) for name in LIBRARIES},
    )


def verdict(change: Effect) -> str:
    """The report's first sentences."""
    said = change.sentence
    return f"{said[0].upper()}{said[1:]}. In brackets: the 95% interval over tasks, for these two policies."
