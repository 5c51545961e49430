"""One function per figure; each returns a Plotly figure without a title or legend.

The page adds titles, captions and the legend of methods, so a figure contains only the drawing. If a method
has several seeds, its line or bar is their mean, and a band or thin marks show the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go
import polars as pl
from numpy.typing import NDArray

from skillpress.reports.report.data import Curve, PolicyResult, by_method
from skillpress.reports.report.smoothing import running_mean, window
from skillpress.reports.report.theme import INK, KIND_COLORS, PAPER, PERCENT_STOPS, Look, counting, styled


@dataclass(frozen=True)
class Metric:
    """A training metric that has a figure."""

    column: str
    title: str
    axis: str
    percent: bool = False


METRICS = (
    Metric("success", "Success in training", "episodes won", percent=True),
    Metric("success_length", "Length of successes", "steps"),
    Metric("dictionary/segments", "Phrases per success", "phrases"),
    Metric("dictionary/description_length", "Description length", "bits per success"),
    Metric("dictionary/earlier_share", "Corpus from earlier steps", "share of successes", percent=True),
    Metric("skills/exploitable_rate", "Exploitable successes", "cheaper with one skill more", percent=True),
    Metric("invalid", "Actions refused or in a bad format", "share of steps", percent=True),
    Metric("entropy", "Entropy of the policy", "nats per token"),
    Metric("actions/entropy", "Entropy of actions", "nats per action"),
    Metric("actions/oracle", "The oracle's action", "its probability", percent=True),
)
"""Learning curves, in the page's order. Curves that no run has are left out."""

REWARD = "reward/"
"""The prefix of the columns of rewarded measures (``training/batch_metrics.py``)."""


def reward_metrics(curves: Sequence[Curve]) -> list[Metric]:
    """L0's Figure 3, from the rewards other than success: each part, the length of responses, the steps.

    Parts come in the order of their columns. The list is empty if only success and invalid actions were
    rewarded.
    """
    columns = dict.fromkeys(column for curve in curves for column in curve.frame.columns)
    parts = [
        Metric(column, f"Reward: {column.removeprefix(REWARD).replace('_', ' ')}", "mean per step")
        for column in columns
        if column.startswith(REWARD)
    ]
    others = [
        Metric("response_tokens", "Length of responses", "tokens"),
        Metric("episode_length", "Steps of an episode", "steps"),
    ]
    return [*parts, *others] if parts else []


def success(policies: Sequence[PolicyResult], looks: Mapping[str, Look]) -> go.Figure:
    """Pass@1: one row per method, with a mark and its Wilson interval per seed, and the mean as a number."""
    methods = by_method(policies)
    figure = go.Figure()
    for row, (method, results) in enumerate(methods.items()):
        rates = [result.summary.pass_at_1 for result in results]
        mean = float(np.mean([rate.mean for rate in rates]))
        offsets = np.linspace(-0.22, 0.22, len(rates)) if len(rates) > 1 else [0.0]
        figure.add_scatter(
            x=[rate.mean for rate in rates],
            y=[row + offset for offset in offsets],
            error_x={
                "array": [rate.high - rate.mean for rate in rates],
                "arrayminus": [rate.mean - rate.low for rate in rates],
                "thickness": 2.5 if len(rates) == 1 else 1.5,
                "width": 5 if len(rates) == 1 else 0,
            },
            mode="markers",
            marker={"color": looks[method].color, "size": 11 if len(rates) == 1 else 7},
            customdata=[(result.seed, result.summary.pass_at_1.episodes) for result in results],
            hovertemplate="%{x:.1%}, seed %{customdata[0]}, %{customdata[1]} episodes<extra></extra>",
            name=escape(method),
        )
        figure.add_annotation(
            x=1, xref="paper", xanchor="left", y=row, xshift=12, text=f"<b>{mean:.1%}</b>", showarrow=False,
            font={"color": INK, "size": 14},
        )  # fmt: skip
    styled(figure, 56 + 46 * len(methods), "episodes won (Pass@1)")
    figure.update_yaxes(
        tickvals=list(range(len(methods))),
        ticktext=[escape(method) for method in methods],
        range=[len(methods) - 0.5, -0.5],
        showgrid=False,
    )
    figure.update_xaxes(tickformatstops=PERCENT_STOPS)
    figure.update_layout(margin={"r": 76})  # for the numbers
    return figure


def budget(policies: Sequence[PolicyResult], looks: Mapping[str, Look]) -> go.Figure:
    """Success against step budget: the mean of each method's seeds and the band that they span."""
    figure = go.Figure()
    for method, results in by_method(policies).items():
        curves = np.array([result.summary.budget.success for result in results])
        steps = np.arange(1, curves.shape[1] + 1)
        _line_with_band(
            figure,
            steps,
            values=curves,
            method=method,
            look=looks[method],
            hover="%{y:.1%} within %{x} steps",
        )
    styled(figure, 380, "step budget", "share of episodes won")
    counting(figure, 1, max(len(policy.summary.budget.success) for policy in policies))
    figure.update_yaxes(tickformatstops=PERCENT_STOPS, rangemode="tozero")
    return figure


def smoothing(curves: Sequence[Curve]) -> int:
    """Training steps in the running mean of every learning curve of a page, by the shortest of its runs."""
    return window(min((curve.frame.height for curve in curves), default=1))


def learning_curve(curves: Sequence[Curve], metric: Metric, looks: Mapping[str, Look]) -> go.Figure:
    """One metric over training: every step of every seed as a pale point, over them each method's running
    mean (``smoothing``), and the band that the running means of its seeds span."""
    figure, width = go.Figure(), smoothing(curves)
    hover = ("%{y:.1%}" if metric.percent else "%{y:.3g}") + " at step %{x}"
    ends = [1.0]
    for method in dict.fromkeys(curve.method for curve in curves):
        own = [c for c in curves if c.method == method and metric.column in c.frame.columns]
        if not own:
            continue
        look = looks[method]
        for curve in own:
            _points(figure, curve, metric.column, look, hover)
        last = min(curve.frame.height for curve in own)  # a run that is not finished is shorter
        smooth = [running_mean(curve.frame[metric.column], width)[:last] for curve in own]
        steps = own[0].frame["step"].to_numpy()[:last]
        values = np.array(smooth, dtype=np.float64)
        _line_with_band(figure, steps, values=values, method=method, look=look, hover=hover)
        ends += [step for curve in own for step in (curve.frame["step"][0], curve.frame["step"][-1])]
    styled(figure, 270, "training step", metric.axis)
    counting(figure, min(ends), max(ends))
    if metric.percent:
        figure.update_yaxes(tickformatstops=PERCENT_STOPS, rangemode="nonnegative")
    return figure


def _points(figure: go.Figure, curve: Curve, column: str, look: Look, hover: str) -> None:
    """Add a training's values as they were measured."""
    figure.add_scatter(
        x=curve.frame["step"].to_numpy(), y=curve.frame[column].cast(pl.Float64).to_numpy(), mode="markers",
        marker={"color": look.fill(0.3), "size": 4, "line": {"width": 0}},
        name=f"{escape(curve.method)}, seed {curve.seed}, each step",
        hovertemplate=f"{escape(curve.method)}, seed {curve.seed}: {hover}<extra></extra>",
    )  # fmt: skip


def success_lengths(policies: Sequence[PolicyResult], looks: Mapping[str, Look]) -> go.Figure:
    """The length of successes: one histogram per method, one above the other, with their medians."""
    methods = by_method(policies)
    figure = go.Figure()
    longest = max((max(p.summary.success_lengths, default=1) for p in policies), default=1)
    lengths = np.arange(1, longest + 1)
    for row, (method, results) in enumerate(methods.items()):
        counts = sum(
            (
                np.array([result.summary.success_lengths.get(n, 0) for n in lengths.tolist()])
                for result in results
            ),
            np.zeros(longest, dtype=np.int64),
        )
        total = int(counts.sum())
        if not total:
            continue
        shares = counts / total
        base = float(len(methods) - 1 - row)
        figure.add_bar(
            x=lengths, y=shares / shares.max() * 0.78, base=base, width=0.86,
            marker={"color": looks[method].fill(0.75), "line": {"width": 0}},
            customdata=shares, name=escape(method),
            hovertemplate="%{customdata:.1%} of successes take %{x} steps<extra></extra>",
        )  # fmt: skip
        median = int(np.searchsorted(np.cumsum(counts), total / 2)) + 1
        figure.add_scatter(
            x=[median], y=[base - 0.07], mode="markers", name=f"{escape(method)}, median",
            marker={"symbol": "triangle-up", "size": 9, "color": INK},
            hovertemplate=f"median {median} steps<extra></extra>",
        )  # fmt: skip
    styled(figure, 70 + 74 * len(methods), "steps to success")
    counting(figure, 1, longest)
    figure.update_layout(barmode="overlay")
    figure.update_yaxes(
        tickvals=[len(methods) - 1 - row + 0.3 for row in range(len(methods))],
        ticktext=[escape(method) for method in methods],
        range=[-0.2, len(methods)],
        showgrid=False,
    )
    return figure


def action_mix(policies: Sequence[PolicyResult]) -> go.Figure:
    """The steps of successes: one bar per method, cut into kinds of action."""
    methods = by_method(policies)
    kinds = list(
        dict.fromkeys(kind for policy in policies for kind in policy.environment_behavior.action_mix)
    )
    counts = np.array(
        [
            [sum(r.environment_behavior.action_mix.get(kind, 0) for r in results) for kind in kinds]
            for results in methods.values()
        ],
        dtype=np.float64,
    )
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = go.Figure()
    for column, kind in enumerate(kinds):
        figure.add_bar(
            x=shares[:, column], y=[escape(method) for method in methods], orientation="h", name=escape(kind),
            marker={"color": KIND_COLORS[column % len(KIND_COLORS)], "line": {"color": PAPER, "width": 1}},
            text=[f"{share:.0%}" if share >= 0.06 else "" for share in shares[:, column]],
            textposition="inside", insidetextanchor="middle", textangle=0,
            hovertemplate=f"{escape(kind)}: %{{x:.1%}}<extra></extra>",
        )  # fmt: skip
    styled(figure, 110 + 44 * len(methods), "steps of won episodes")
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        legend={"orientation": "h", "traceorder": "normal", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    figure.update_xaxes(tickformatstops=PERCENT_STOPS, range=[0, 1])
    figure.update_yaxes(autorange="reversed", showgrid=False, ticklabelstandoff=6)
    return figure


def _line_with_band(
    figure: go.Figure,
    x: NDArray[np.generic],
    values: NDArray[np.float64],
    method: str,
    look: Look,
    hover: str,
) -> None:
    """Add the mean of ``values`` (seeds x points) and, with several seeds, the area they span."""
    if len(values) > 1:
        for edge, fill in ((values.max(axis=0), None), (values.min(axis=0), "tonexty")):
            figure.add_scatter(
                x=x, y=edge, mode="lines", line={"width": 0}, fill=fill,
                fillcolor=look.fill(0.15), hoverinfo="skip", name=f"{escape(method)}, seeds",
            )  # fmt: skip
    figure.add_scatter(
        x=x, y=values.mean(axis=0), mode="lines", name=escape(method),
        line={"color": look.color, "dash": look.dash, "width": 2.4},
        hovertemplate=f"{escape(method)}: {hover}<extra></extra>",
    )  # fmt: skip
