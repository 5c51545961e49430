"""Turn :class:`ReportData` into the text of one HTML page.

The page holds Plotly's script once, and the data of each figure for it; it loads nothing. The same data give
the same page, byte for byte. Jinja escapes every text. Figures escape theirs themselves, because Plotly reads
simple markup in labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from skillpress.core.intervals import FEW_TASKS, ROUGH
from skillpress.reports.report import figures, tables
from skillpress.reports.report.boxes import example_boxes, phrase_box
from skillpress.reports.report.data import ReportData, by_method
from skillpress.reports.report.dictionary_section import panels
from skillpress.reports.report.paper_page import TEMPLATES, paper_section
from skillpress.reports.report.theme import DARK, Look, family_colors, looks, rgba


@dataclass(frozen=True)
class LearningFigure:
    """One learning curve on the page."""

    title: str
    html: Markup


def render_report(data: ReportData) -> str:
    """The page, as the text of an HTML file.

    Raises:
        ValueError: there are no policies, or an example's phrases do not fit its steps.
    """
    if not data.policies:
        raise ValueError("a report needs at least one evaluated policy")
    colors = family_colors(_skills(data))
    styles = looks(data.policies, (curve.method for curve in data.curves))
    phrases = tables.phrase_rows(data.phrases)
    mixed = any(policy.environment_behavior.action_mix for policy in data.policies)
    return TEMPLATES.get_template("report.html.j2").render(
        data=data,
        plotly=Markup(get_plotlyjs()),
        looks=styles,
        methods=len({policy.method for policy in data.policies if not policy.baseline}),
        baselines=len({policy.method for policy in data.policies if policy.baseline}),
        several_seeds=any(len(results) > 1 for results in by_method(data.policies).values()),
        shades=[[light, dark] for light, dark in DARK.items()]
        + [[_opening(light), _opening(dark)] for light, dark in DARK.items()],
        trained={curve.method: styles[curve.method] for curve in data.curves},
        success_figure=_html(figures.success(data.policies, styles), "success"),
        success_table=tables.success_table(data.policies),
        strata_table=tables.strata_table(data.policies, lambda summary: summary.strata),
        votes=(votes := max(policy.summary.votes for policy in data.policies)),
        strata_votes_table=tables.strata_table(
            data.policies, lambda summary: summary.strata_self_consistency if votes > 1 else {}
        ),
        few_tasks=FEW_TASKS,
        rough=ROUGH if data.policies[0].summary.tasks < ROUGH else 0,
        comparison_table=tables.comparison_table(data.comparisons),
        budget_figure=_html(figures.budget(data.policies, styles), "budget"),
        learning=list(_learning(data, styles, figures.METRICS)),
        rewards=list(_learning(data, styles, figures.reward_metrics(data.curves))),
        smoothing=figures.smoothing(data.curves),
        buffer_note=tables.buffer_note(data.curves, data.parameters),
        shaping_notes=list(tables.shaping_notes(data.curves)),
        mismatch_table=tables.mismatch_table(data.curves),
        length_figure=_html(figures.success_lengths(data.policies, styles), "lengths"),
        mix_figure=_html(figures.action_mix(data.policies), "mix") if mixed else None,
        behavior_table=tables.behavior_table(data.policies),
        failure_table=tables.failure_table(data.policies),
        families={name.replace("_", " "): color for name, color in colors.items()},
        phrases=[(row, phrase_box(row.phrase, colors)) for row in phrases],
        most_bits=max((row.bits for row in phrases), default=1.0),
        examples=[(example, example_boxes(example, colors)) for example in data.examples],
        dictionary=[(panel, _html(panel.figure, panel.name)) for panel in panels(data)],
        library=tables.library_table(data.library),
        evolutions=len(data.library.versions),
        correspondences=tables.correspondence_table(data.correspondences, data.library),
        parameters=tables.flat(data.parameters),
        **paper_section(data.paper_tables, data.paper_notes),
    )


def _learning(
    data: ReportData, styles: dict[str, Look], metrics: Iterable[figures.Metric]
) -> Iterator[LearningFigure]:
    for metric in metrics:
        if any(metric.column in curve.frame.columns for curve in data.curves):
            name = metric.column.replace("/", "-")
            figure = figures.learning_curve(data.curves, metric, styles)
            yield LearningFigure(metric.title, _html(figure, f"curve-{name}"))


def _html(figure: go.Figure, name: str) -> Markup:
    """The figure's element in its final height, with its data; the template's script draws it.

    Drawing waits for the whole page, because only then the element has its final width.
    """
    content = figure.to_json().replace("<", "\\u003c")  # so that no label can close the script element
    return Markup(
        '<div class="plot" id="figure-{}" style="min-height: {}px">'
        '<script type="application/json">{}</script></div>'
    ).format(name, figure.layout.height, Markup(content))


def _opening(color: str) -> str:
    """The beginning of every translucent area of a colour."""
    return rgba(color, 1).removesuffix("1)")


def _skills(data: ReportData) -> list[str]:
    """Every skill on the page: the dictionary's in its order, then others in the examples."""
    named = data.dictionary.alphabet if data.dictionary else ()
    used = (skill for example in data.examples for step in example.steps for skill in step.skills)
    return [*named, *used]
