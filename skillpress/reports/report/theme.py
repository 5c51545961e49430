"""Colours and the common look of every figure.

Methods get a colour-blind-safe palette (after Okabe and Ito, darkened for a white page) in the order in which
they appear. Baselines are grey and dashed, so that trained methods stand out. Skill families get pale fills
on which dark text has a contrast above 7:1.

Figures are made in the colours of a light page. :data:`DARK` has the dark shade of each colour, for readers
whose system asks for dark pages: the page's script looks it up when it draws, styles do so by :func:`both`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from skillpress.reports.report.data import PolicyResult

if TYPE_CHECKING:
    import plotly.graph_objects as go

INK = "#1f2933"
MUTED = "#5b6673"
GRID = "#e8ebee"
EDGE = "#c5ccd3"
PAPER = "#ffffff"
FITTING = 'style="max-width:100%;height:auto"'
"""The attribute that keeps an SVG file from being wider than the screen."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

METHOD_COLORS = ("#0b6fa4", "#c4501b", "#1b7f5c", "#9a4f96", "#a77400", "#2a9fc9", "#b03a5b")
BASELINE_COLORS = ("#a3abb5", "#6b7683", "#404a56")
KIND_COLORS = ("#4c86a8", "#7fb3c8", "#d9843b", "#efb366", "#8f86b8", "#5f5a8a", "#c9ced4", "#7d9a6a")
"""Colours for parts of a whole: kinds of action."""
FAMILY_COLORS = ("#cfe6f4", "#d8efdc", "#fde3c8", "#e7dcf3", "#f9d9dc", "#f3ecb8", "#d5ecec", "#e6e2da")


DARK = {
    INK: "#dde4eb", MUTED: "#9dabb8", GRID: "#2a323a", EDGE: "#4a5561", PAPER: "#14181d",
    **dict(zip(METHOD_COLORS, ("#5cb8ec", "#f08a55", "#4cc79a", "#d58fd1", "#dca935", "#93e1f5", "#ef7f9f"),
               strict=True)),
    **dict(zip(BASELINE_COLORS, ("#74808d", "#a9b3be", "#d3dae1"), strict=True)),
    **dict(zip(KIND_COLORS, ("#4683a6", "#83b9cf", "#d07c34", "#f2bd74", "#968dbf", "#6b66a0", "#65707c",
                             "#86a573"), strict=True)),
    **dict(zip(FAMILY_COLORS, ("#1d4560", "#1f4a2c", "#5a3a16", "#443060", "#5a2730", "#4a4413", "#1c4a4a",
                               "#45413a"), strict=True)),
}  # fmt: skip
"""The shade on a dark page for each colour on a light page."""


def both(color: str) -> str:
    """The colour as a CSS value that follows the page's colour scheme."""
    return f"light-dark({color}, {DARK[color]})"


def scheme_style(parts: Iterable[str], shades: Mapping[str, str] = DARK) -> str:
    """The style element of an SVG file with these elements, which changes colours on dark pages."""
    drawn = "".join(parts)
    rules = [
        f'[{kind}="{light}"]{{{kind}:{dark}}}'
        for light, dark in shades.items()
        for kind in ("fill", "stroke")
        if f'{kind}="{light}"' in drawn
    ]
    return f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"


PERCENT_STOPS = [
    {"dtickrange": [0.99 * 10.0**-power, None], "value": f".{max(0, power - 2)}%"} for power in range(2, 13)
]
"""Formats of a share's ticks, with enough decimals that no two ticks look the same."""


def rgba(color: str, opacity: float) -> str:
    """The colour with this opacity."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


@dataclass(frozen=True)
class Look:
    """The drawing style of one method."""

    color: str
    dash: str
    """Plotly's name for the line style."""

    def fill(self, opacity: float) -> str:
        """The colour with this opacity."""
        return rgba(self.color, opacity)


def looks(policies: Iterable[PolicyResult], curve_methods: Iterable[str] = ()) -> dict[str, Look]:
    """The look of each method, the same in every figure of a page."""
    assigned: dict[str, Look] = {}
    baselines = methods = 0
    named = [(policy.method, policy.baseline) for policy in policies]
    for method, baseline in [*named, *((method, False) for method in curve_methods)]:
        if method in assigned:
            continue
        if baseline:
            assigned[method] = Look(BASELINE_COLORS[baselines % len(BASELINE_COLORS)], "dash")
            baselines += 1
        else:
            assigned[method] = Look(METHOD_COLORS[methods % len(METHOD_COLORS)], "solid")
            methods += 1
    return assigned


def family(skill: str) -> str:
    """The part of a skill's name before its first hyphen, such as ``OP_Add``."""
    return skill.split("-")[0]


def family_colors(skills: Sequence[str]) -> dict[str, str]:
    """The fill of each skill family, in the order of first appearance."""
    families = dict.fromkeys(family(skill) for skill in skills)
    return {name: FAMILY_COLORS[index % len(FAMILY_COLORS)] for index, name in enumerate(families)}


def styled(figure: go.Figure, height: int, x: str, y: str = "") -> go.Figure:
    """Give a figure the page's fonts, margins and axis titles. The figure itself has no title."""
    figure.update_layout(
        template="none",
        height=height,
        minreducedheight=24,  # so that a low figure keeps room for its axis labels and title
        font={"family": FONT, "size": 13, "color": INK},
        margin={"l": 12, "r": 16, "t": 12, "b": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"bgcolor": PAPER, "font": {"family": FONT, "color": INK}},
        showlegend=False,
    )
    axis = {
        "exponentformat": "power",
        "gridcolor": GRID,
        "zeroline": False,
        "automargin": True,
        "title": {"font": {"color": MUTED, "size": 13}},
    }
    figure.update_xaxes(**axis, title_text=x, linecolor=EDGE, showline=True, ticks="outside", ticklen=4)
    figure.update_yaxes(**axis, title_text=y)
    return figure


def whole_ticks(first: float, last: float, most: int = 8) -> int:
    """The distance between the ticks of an axis that counts, such as steps: the smallest of 1, 2, 5, 10, 20,
    ... that puts at most ``most`` of them between ``first`` and ``last``."""
    distances = (factor * int(10**power) for power in count() for factor in (1, 2, 5))
    return next(distance for distance in distances if (last - first) / distance <= most - 1)


def counting(figure: go.Figure, first: float, last: float) -> go.Figure:
    """Let the horizontal axis, which counts from ``first`` to ``last``, have ticks only at whole numbers."""
    return figure.update_xaxes(tick0=0, dtick=whole_ticks(first, last))
