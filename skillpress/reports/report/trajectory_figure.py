"""How the log ratio of two policies spreads with the turn: an SVG file with the same bytes on every
machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from skillpress.evaluation.analysis.trajectory_ratio import Spread
from skillpress.reports.report.theme import (
    FITTING,
    FONT,
    GRID,
    INK,
    METHOD_COLORS,
    MUTED,
    PAPER,
    scheme_style,
)

WIDTH, HEIGHT, LEFT, RIGHT = 760, 440, 74, 740
UPPER, LOWER = (48, 268), (318, 396)
"""Top and bottom of the two panels."""
Scale = Callable[[float], float]


def draw(spreads: Sequence[Spread]) -> str:
    """Draw two panels. Above is the log ratio of turns 0 to k: median, middle 50% and 90% of the trajectories
    that have a turn k. Below is the effective share of their weights.

    Args:
        spreads: one per turn, from the first on; at least one.
    """
    turns = range(len(spreads))
    x = _scale((0, max(1, len(spreads) - 1)), (LEFT, RIGHT))
    edges = [value for spread in spreads for value in (*spread.quantiles.values(), 0.0)]
    low, high = min(edges), max(edges)
    if low == high:
        low, high = -1.0, 1.0
    y, share = _scale((low, high), UPPER[::-1]), _scale((0, 1), LOWER[::-1])
    quantiles = {name: [spread.quantiles[name] for spread in spreads] for name in spreads[0].quantiles}
    color = METHOD_COLORS[0]
    parts = [
        _text(LEFT, 24, "log ratio of turns 0 to k, in nats: median, middle 50% and 90%", bold=True),
        *_rules(y, _ticks(low, high), _form(low, high)),
        _area(x, y, low=quantiles["p05"], high=quantiles["p95"], color=color, opacity=0.15),
        _area(x, y, low=quantiles["p25"], high=quantiles["p75"], color=color, opacity=0.3),
        _line(x, y, quantiles["p50"], color),
        _text(LEFT, 302, "effective sample size of their weights, as a share of the trajectories", bold=True),
        *_rules(share, (0.0, 0.5, 1.0), "{:.0%}"),
        _line(x, share, [spread.effective_share for spread in spreads], METHOD_COLORS[1]),
        *(
            _text(x(turn), LOWER[1] + 18, f"{turn:g}", color=MUTED, anchor="middle")
            for turn in _ticks(0, turns[-1])
            if turn == int(turn)
        ),
        _text((LEFT + RIGHT) / 2, LOWER[1] + 36, "turn k", color=MUTED, anchor="middle"),
    ]
    about = f"The spread of the log ratio over {len(spreads)} turns, and the effective share of the weights"
    head = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" {FITTING}'
    parts.insert(0, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>')
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {head} aria-label="{about}" '
            f'font-family="{escape(FONT)}">',
            scheme_style(parts),
            *parts,
            "</svg>\n",
        )
    )


def _scale(values: tuple[float, float], pixels: tuple[float, float]) -> Scale:
    (first, last), (start, end) = values, pixels
    return lambda value: start + (value - first) / (last - first) * (end - start)


def _ticks(low: float, high: float) -> list[float]:
    """Three to nine round numbers from ``low`` to ``high``."""
    step = _step(low, high)
    first = int(-(-low // step))
    return [step * number for number in range(first, int(high // step) + 1)]


def _step(low: float, high: float) -> float:
    """The distance between two ticks: 1, 2 or 5 times a power of ten."""
    rough = max(high - low, 1e-9) / 5
    power = 10.0 ** _floor_log10(rough)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def _form(low: float, high: float) -> str:
    """The format of tick labels, with enough decimals that no two look the same."""
    decimals = max(0, -_floor_log10(_step(low, high)))
    return f"{{:.{decimals}f}}"


def _floor_log10(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def _points(x: Scale, y: Scale, values: Iterable[float]) -> list[str]:
    return [f"{x(turn):.1f} {y(value):.1f}" for turn, value in enumerate(values)]


def _line(x: Scale, y: Scale, values: Sequence[float], color: str) -> str:
    if len(values) == 1:
        return f'<circle cx="{x(0):.1f}" cy="{y(values[0]):.1f}" r="4" fill="{color}"/>'
    path = " L".join(_points(x, y, values))
    return f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2.4"/>'


def _area(x: Scale, y: Scale, low: Sequence[float], high: Sequence[float], color: str, opacity: float) -> str:
    there, back = _points(x, y, high), _points(x, y, low)[::-1]
    return f'<path d="M{" L".join((*there, *back))} Z" fill="{color}" fill-opacity="{opacity:g}"/>'


def _rules(y: Scale, values: Iterable[float], form: str) -> list[str]:
    """Horizontal lines with their numbers; the line at 0 is darker."""
    drawn = []
    for value in values:
        look = f'stroke="{MUTED if value == 0 else GRID}" stroke-width="1"'
        drawn.append(f'<path d="M{LEFT} {y(value):.1f} H{RIGHT}" {look}/>')
        drawn.append(_text(LEFT - 8, y(value) + 4, form.format(value), color=MUTED, anchor="end"))
    return drawn


def _text(
    x: float, y: float, words: str, *, color: str = INK, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="13" fill="{color}" text-anchor="{anchor}"'
    return f"<text {place}{weight}>{escape(words.replace('-', '−') if color == MUTED else words)}</text>"
