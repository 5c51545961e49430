"""Numbers as the page writes them: differences in points, shares in percent, an interval behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

NONE = "–"


def points(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """The value in points, such as ``+1.5 (+0.2 to +2.8)``; a dash for None."""
    if value is None:
        return NONE
    text = _signed(value)
    return text if low is None or high is None else f"{text} ({_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-0.0", "+0.0")


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """The value in percent, such as ``82.5 (80.9 to 84.1)``; a dash for None."""
    if value is None:
        return NONE
    text = f"{100 * value:.1f}"
    return text if low is None or high is None else f"{text} ({100 * low:.1f} to {100 * high:.1f})"


def p_value(value: float | None) -> str:
    """Two digits; ``< 0.001`` below."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    head, *lines = (
        "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (heads, *rows)
    )
    yield from (head, "|" + "---|" * len(heads), *lines)
