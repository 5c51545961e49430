"""The figures of the section on the dictionary; like those in ``figures.py``, they have no titles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go
import polars as pl

from skillpress.evaluation.analysis.drift import lifetimes as lifetime_table
from skillpress.evaluation.analysis.drift import spans
from skillpress.reports.report.theme import (
    INK,
    KIND_COLORS,
    METHOD_COLORS,
    MUTED,
    PAPER,
    PERCENT_STOPS,
    counting,
    styled,
)
from skillpress.skills.history import History

LONGEST_LIVED = 24
"""The figure of lifetimes shows at most this many phrases."""

LABEL = 44
"""Labels show at most this many characters of a phrase. The full phrase appears on hovering."""

STORED, SPENT = KIND_COLORS[2], KIND_COLORS[0]
"""The colours of the two parts of the description length."""


def bits(parts: pl.DataFrame) -> go.Figure:
    """𝓛_BDL with and without learned phrases, cut into its two parts; see ``mdl_report.parts``."""
    rows = [f"{n} phrases" if row else f"{n} skills alone" for row, n in enumerate(parts["phrases"])]
    figure = go.Figure()
    for column, name, color in (
        ("dictionary_bits", "the dictionary", STORED),
        ("data_bits", "the successes", SPENT),
    ):
        figure.add_bar(
            x=parts[column].to_list(), y=rows, orientation="h", name=name,
            marker={"color": color, "line": {"color": PAPER, "width": 1}},
            hovertemplate=f"{name}: %{{x:.2f}} bits<extra></extra>",
        )  # fmt: skip
    for row, total in zip(rows, parts["dictionary_bits"] + parts["data_bits"], strict=True):
        figure.add_annotation(
            x=total, y=row, text=f"<b>{total:.1f}</b>", xanchor="left", xshift=6, showarrow=False,
            font={"color": INK, "size": 14},
        )  # fmt: skip
    styled(figure, 190, "bits per success")
    figure.update_layout(barmode="stack", bargap=0.35, margin={"r": 48})
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return _with_legend(figure)


def savings(learned: pl.DataFrame) -> go.Figure:
    """One bar per learned phrase, coloured by length; the phrase that saves most bits comes first."""
    ranked = learned.sort("bits_saved", descending=True).with_row_index("rank", offset=1)
    figure = go.Figure()
    for length in sorted(ranked["length"].unique().to_list()):
        these = ranked.filter(pl.col("length") == length)
        figure.add_bar(
            x=these["rank"].to_list(), y=these["bits_saved"].to_list(), width=0.85,
            name=f"{length} skills",
            marker={"color": METHOD_COLORS[(length - 2) % len(METHOD_COLORS)], "line": {"width": 0}},
            customdata=[[escape(p), n] for p, n in zip(these["phrase"], these["uses"], strict=True)],
            hovertemplate="%{customdata[0]}<br>%{y:,.0f} bits, used %{customdata[1]:,} times<extra></extra>",
        )  # fmt: skip
    styled(figure, 300, "learned phrases by rank", "bits saved in all successes")
    counting(figure, 1, len(ranked))
    figure.update_layout(barmode="overlay")
    return _with_legend(figure)


def coverage(table: pl.DataFrame) -> go.Figure:
    """The share of skills that phrases of each length cover; see ``mdl_report.coverage``."""
    shares = table["skill_share"].to_list()
    figure = go.Figure()
    figure.add_bar(
        x=table["length"].to_list(), y=shares,
        marker={"color": SPENT}, customdata=table["segments"].to_list(),
        text=[f"{share:.0%}" for share in shares], textposition="outside", cliponaxis=False,
        hovertemplate="%{y:.1%} of skills, in %{customdata:,} segments of %{x}<extra></extra>",
    )  # fmt: skip
    styled(figure, 300, "skills in the phrase", "share of all skills")
    figure.update_layout(bargap=0.35)
    figure.update_xaxes(dtick=1)
    figure.update_yaxes(tickformatstops=PERCENT_STOPS, rangemode="tozero")
    return figure


def similarity(changes: pl.DataFrame) -> go.Figure:
    """Overlap of every step's dictionary with the previous one and with the base; see ``drift.drift``."""
    figure = go.Figure()
    for column, name, color, dash in (
        ("previous", "with the step before", METHOD_COLORS[0], "solid"),
        ("base_phrases", "with the base", METHOD_COLORS[1], "solid"),
        ("base_uses", "with the base, by uses", METHOD_COLORS[1], "dot"),
    ):
        known = changes.drop_nulls(column)
        if len(known):
            figure.add_scatter(
                x=known["step"].to_list(), y=known[column].to_list(), mode="lines+markers", name=name,
                line={"color": color, "dash": dash, "width": 2}, marker={"size": 4},
                hovertemplate=f"{name}: %{{y:.0%}} at step %{{x}}<extra></extra>",
            )  # fmt: skip
    styled(figure, 300, "training step", "overlap of learned phrases")
    counting(figure, changes["step"][0], changes["step"][-1])
    figure.update_yaxes(tickformatstops=PERCENT_STOPS, range=[0, 1.02])
    return _with_legend(figure)


def lifetimes(history: History) -> go.Figure:
    """One row per phrase, the longest-lived on top; bars cover the steps whose dictionary has the phrase."""
    shown = lifetime_table(history)["phrase"].to_list()[:LONGEST_LIVED]
    stretches = spans(history).filter(pl.col("phrase").is_in(shown))
    row = {phrase: number for number, phrase in enumerate(shown)}
    figure = go.Figure()
    figure.add_bar(
        base=(stretches["first"] - 0.5).to_list(),
        x=(stretches["last"] - stretches["first"] + 1).to_list(),
        y=[row[phrase] for phrase in stretches["phrase"]],
        orientation="h",
        marker={"color": METHOD_COLORS[0], "line": {"width": 0}},
        customdata=[(escape(phrase), *numbers) for phrase, *numbers in stretches.iter_rows()],
        hovertemplate="%{customdata[0]}<br>steps %{customdata[1]} to %{customdata[2]}, "
        "used %{customdata[3]:,} times<extra></extra>",
    )
    styled(figure, 90 + 22 * len(shown), "training step")
    counting(figure, min(history), max(history))
    figure.update_layout(barmode="overlay", bargap=0.35)
    figure.update_xaxes(range=[min(history) - 0.5, max(history) + 0.5])
    figure.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[escape(label) for label in _labels(shown)],
        range=[len(shown) - 0.5, -0.5],
        tickfont={"size": 11, "color": MUTED},
        showgrid=False,
    )
    return figure


def scaling(table: pl.DataFrame) -> go.Figure:
    """Seconds against sequences, on two logarithmic axes; see ``data.Scaling``."""
    figure = go.Figure()
    for column, name, color, dash in (
        ("fit_s", "skillpress", METHOD_COLORS[0], "solid"),
        ("hf_bpe_s", "HF tokenizers", METHOD_COLORS[1], "dash"),
    ):
        figure.add_scatter(
            x=table["sequences"].to_list(), y=table[column].to_list(), mode="lines+markers", name=name,
            line={"color": color, "dash": dash, "width": 2.4}, marker={"size": 8},
            hovertemplate=f"{name}: %{{y:.3g}} s for %{{x:,}} sequences<extra></extra>",
        )  # fmt: skip
    styled(figure, 300, "sequences", "seconds")
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(type="log", dtick=1, exponentformat="power")
    return _with_legend(figure)


def _labels(phrases: Sequence[str]) -> list[str]:
    """Each phrase in at most ``LABEL`` characters; phrases that would then look the same are numbered."""
    short = [phrase if len(phrase) <= LABEL else phrase[: LABEL - 1] + "…" for phrase in phrases]
    seen: Counter[str] = Counter()
    labels = []
    for label in short:
        seen[label] += 1
        number = f"… ({seen[label]})" if seen[label] > 1 else ""
        labels.append(label[: LABEL - len(number)].rstrip("…") + number if number else label)
    return labels


def _with_legend(figure: go.Figure) -> go.Figure:
    legend = {"orientation": "h", "traceorder": "normal", "y": 1.02, "yanchor": "bottom", "x": 0}
    return figure.update_layout(showlegend=True, legend=legend)
