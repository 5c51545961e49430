"""The page's section on the dictionary: the bits it saves, how it changes, how fast it is fitted.

Each panel is a figure with a title and a sentence on how to read it. A panel is left out if the experiment
has no data for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from skillpress.evaluation.analysis.drift import drift, lifetimes
from skillpress.evaluation.analysis.mdl_report import coverage, parts
from skillpress.reports.report import dictionary_figures as figures
from skillpress.reports.report.data import ReportData, Scaling
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.history import History


@dataclass(frozen=True)
class Panel:
    """One figure of the section."""

    name: str
    title: str
    figure: go.Figure
    caption: str
    wide: bool = False
    """Whether the panel takes the page's whole width."""


def panels(data: ReportData) -> Iterator[Panel]:
    """The section's figures in the page's order."""
    if data.dictionary is not None:
        yield from _savings(data.dictionary, data)
    if data.history:
        yield from _drift(data.history, data.dictionary)
    if data.scaling is not None:
        yield _scaling(data.scaling)


def _savings(dictionary: SkillDictionary, data: ReportData) -> Iterator[Panel]:
    table = parts(dictionary)
    before, after = table.select(bits=table["dictionary_bits"] + table["data_bits"])["bits"]
    share = 1 - after / before if before else 0.0
    saved = f"saves {share:.0%}" if share >= 0 else f"costs {-share:.0%} more"
    yield Panel(
        name="bits",
        title="Bits before and after",
        figure=figures.bits(table),
        caption=(
            f"Bits to write down the {dictionary.sequences:,} successes, per success (Eq. 3): the phrases "
            f"themselves, and the successes as indices into them. Having phrases {saved}."
        ),
    )
    learned = data.phrases.filter(data.phrases["length"] > 1)
    if len(learned):
        yield Panel(
            name="savings",
            title="Bits saved per phrase",
            figure=figures.savings(learned),
            caption=(
                "Every learned phrase, the most useful first, with the bits that the successes would need "
                "more without it, after a new cut. Below zero a phrase costs more than it saves."
            ),
        )
    yield Panel(
        name="coverage",
        title="Coverage by phrase length",
        figure=figures.coverage(coverage(dictionary)),
        caption="The share of all skills in the successes that phrases of each length cover.",
    )


def _drift(history: History, base: SkillDictionary | None) -> Iterator[Panel]:
    changes, lives = drift(history, base.learned_counts if base else None), lifetimes(history)
    yield Panel(
        name="similarity",
        title="Similarity of dictionaries",
        figure=figures.similarity(changes),
        caption=(
            "Every training step fits a dictionary. Overlap is shared phrases over all phrases (Jaccard), or "
            "the same weighted by uses; 100% is the same dictionary. The base is the one fitted before "
            "training."
        ),
    )
    if len(lives):
        typical, always = np.median(lives["steps"]), int((lives["steps"] == len(history)).sum())
        yield Panel(
            name="lifetimes",
            title="Lifetimes of phrases",
            figure=figures.lifetimes(history),
            caption=(
                f"The longest-lived of {len(lives):,} phrases that were ever learned; a bar spans the steps "
                f"whose dictionary has the phrase. Half of all phrases live for at most {typical:g} of the "
                f"{len(history)} steps, {always} live in every one."
            ),
            wide=True,
        )


def _scaling(scaling: Scaling) -> Panel:
    memory = scaling.table.sort("sequences")["fit_memory_mib"][-1]
    return Panel(
        name="scaling",
        title="Fitting from a thousand to a million sequences",
        figure=figures.scaling(scaling.table),
        caption=(
            "Greedy fit of ALFWorld-like corpora against the BPE trainer of Hugging Face tokenizers stopped "
            f"at the same vocabulary size, one thread. The largest corpus takes {memory:,.0f} MiB. "
            f"A benchmark, not this experiment: {scaling.machine}, {scaling.date}."
        ),
    )
