"""SVG by hand: boxes, arrows and words on a white page, or a dark one; the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from skillpress.reports.report.theme import DARK, FITTING, PAPER, scheme_style

INK, MUTED, LINE = "#1f2933", "#5b6673", "#8a949f"
BLUE, GREEN, ORANGE, VIOLET, RED, YELLOW, GREY = (
    "#cfe6f4", "#d8efdc", "#fde3c8", "#e7dcf3", "#f9d9dc", "#f3ecb8", "#eef0f2"
)  # fmt: skip
STRONG = "#0b6fa4"
DOTS = "; a small dot: one seed"
"""What a title says of :meth:`Drawing.seeds`."""
SHADES = DARK | {
    LINE: "#74808d", GREY: "#262d34", "#b45309": "#f0a04b", "#2f7d4f": "#5fc48a", "#b3261e": "#f2857e",
    "#6d4aa8": "#b79cf0",
    "#e3e6ea": "#39424b",
}  # fmt: skip
"""Colour on a white page to its shade on a dark one."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass
class Drawing:
    """What is drawn so far; x to the right, y down."""

    width: int
    height: int
    about: str
    """A description of the picture for readers who cannot see it."""
    parts: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: str, *, size: int = 14, color: str = INK, anchor: str = "middle",
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        """Words on one line; y is their base line."""
        weight = ' font-weight="600"' if bold else ""
        family = f' font-family="{MONO}"' if mono else ""
        place = f'x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
        self.parts.append(f"<text {place}{weight}{family}>{escape(words)}</text>")

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, lines: tuple[str, ...] = (), *,
        edge: str = LINE, size: int = 14, mono: bool = False,
    ) -> None:  # fmt: skip
        """A rounded box; of its lines the first is bold."""
        self._rectangle(x, y, width, height, f'rx="6" fill="{fill}" stroke="{edge}"')
        step = size + 4
        top = y + height / 2 - step * (len(lines) - 1) / 2 + size * 0.36
        for number, line in enumerate(lines):
            first = number == 0
            self.text(
                x + width / 2, top + number * step, line, size=size if first else size - 2,
                color=INK if first else MUTED, bold=first, mono=mono,
            )  # fmt: skip

    def frame(self, x: float, y: float, width: float, height: float, *, dashed: bool = False) -> None:
        """A box around others."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._rectangle(x, y, width, height, f'rx="9" fill="none" stroke="{INK}" stroke-width="1.6"{dash}')

    def arrow(self, *points: tuple[float, float], dashed: bool = False) -> None:
        """A line through the points, with a head at the last."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.4" marker-end="url(#head)"{dash}/>'
        )

    def line(self, points: Sequence[tuple[float, float]], color: str, width: float = 2) -> None:
        """A line through the points, so many pixels wide."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"/>')

    def bar(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """A filled bar."""
        self._rectangle(x, y, width, height, f'fill="{fill}"')

    def dot(self, x: float, y: float, radius: float, fill: str) -> None:
        """A filled circle."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}"/>')

    def seeds(self, places: Sequence[tuple[float, float]], fill: str) -> None:
        """A small dot for each seed, beside the large one of their mean."""
        for x, y in places:
            self.dot(round(x, 2), round(y, 2), 1.7, fill)

    def _rectangle(self, x: float, y: float, width: float, height: float, look: str) -> None:
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {look}/>')

    def svg(self) -> str:
        """The file."""
        size = (
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" {FITTING}'
        )
        about = f'role="img" aria-label="{escape(self.about)}" font-family="{escape(FONT)}"'
        marker = (
            'id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"'
        )
        parts = (
            f'<defs><marker {marker}><path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="{PAPER}"/>',
            *self.parts,
        )
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {about}>'
        return "\n".join((opening, scheme_style(parts, SHADES), *parts, "</svg>")) + "\n"
