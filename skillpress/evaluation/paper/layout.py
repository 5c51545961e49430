"""The paper's tables from any set of runs, each figure next to the paper's own.

An environment's folder says which rows it adds to which table (a :class:`PaperPanel`: the table's number, the
heading in the paper, and a small function from episodes to figures). This module lays them out as in the
paper, one column or row per method. ``printed_figures.csv`` holds the paper's printed figures; a count is
stored with its total (Table 7's n; for Table 4 the sum of the column).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import polars as pl

from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import BehaviorFigure

METHODS = {
    "explorer": "Random explorer",
    "vanilla": "Vanilla",
    "grpo": "GRPO",
    "round_length": "Pure Length",
    "segcost": "SegCost (buffer)",
    "segcost_no_buffer": "SegCost (no buffer)",
}
"""Methods of ReuseRL's tables by their names in ``printed_figures.csv``. The explorer, a floor, is not the
paper's."""
L0_METHODS = {"explorer": METHODS["explorer"], "vanilla": METHODS["vanilla"], "l0": "L0-RL"}
"""Methods of L0's table, in the same way."""

ONE_ANSWER = {"direct": "Direct Answer", "chain_of_thought": "CoT", "retrieval": "RAG"}
"""Renderings of question answering whose agents have no loop, to L0's names of these baselines."""

UNTRAINED = frozenset({"explorer", "vanilla", *ONE_ANSWER.values()})
"""Methods without a training run, and so without a checkpoint to choose."""

TITLES = {
    1: "Main results (the paper: SC@7 on ALFWorld, Pass@1 elsewhere)",
    2: "Behaviour beyond the success rate",
    4: "Closing operations of Countdown-Stepwise successes",
    5: "Thought and action on TextWorld-Cooking games whose cookbook says cook what is cooked already",
    6: "ALFWorld: how in-distribution tasks are solved",
    7: "ALFWorld: what failed out-of-distribution episodes lacked",
    8: "TextWorld-Cooking: lengths and how failures ended",
    9: "Countdown-Stepwise: how episodes go; a failure that took all T steps is a timeout, stuck or not",
    10: "Most used phrases of the dictionary fitted to each method's successes, and of the last step's",
    11: "ALFWorld: whether the phrases that the paper matches with SkillRL's skills are in the dictionary",
    12: "Question answering: exact match (EM), F1 and the judge's score (LJ)",
    13: "Question answering: exact match on multi-hop questions, beside agents of other papers",
}
"""The contents of each table by its number: 1 to 11 are the paper's (its Table 3 states no measurement), 12
and 13 are L0's Tables 2 and 1.
"""
NAMES = {12: "L0's Table 2", 13: "L0's Table 1"}
"""The names of tables that are not called by their numbers."""

METHOD_ROWS = frozenset({1, 5, 10, 12, 13})
"""Tables with a row for each method: the papers', and Table 10, whose phrases need the space."""

_PAPER_FILE = files("skillpress.evaluation.paper") / "printed_figures.csv"


@dataclass(frozen=True)
class PaperPanel:
    """The rows that one environment adds to one of the paper's tables."""

    table: int
    heading: str
    """The environment as the table names it, and which episodes count."""
    figures: Callable[[MethodEpisodes], tuple[BehaviorFigure, ...]]
    """Computes the rows, by the keys of ``printed_figures.csv``; every method has the same rows."""
    printed: Callable[[str, MethodEpisodes], Mapping[str, str]] | None = None
    """Maps a row's key and a method's episodes, of whose model and tasks the figures must be, to the paper's
    figure of each method of its table; None means ``printed_figures.csv``."""


@dataclass(frozen=True)
class PaperCell:
    """A method's figure, and the paper's figure for it."""

    text: str = ""
    """The formatted figure; empty if no run was given."""
    value: float | None = None
    low: float | None = None
    """Lower end of the 95% interval over tasks, in the unit of ``value``."""
    high: float | None = None
    unit: str = ""
    episodes: int | None = 0
    """Number of episodes behind the figure; None if it is not computed from episodes."""
    paper: str = ""
    """The paper's figure as printed; empty if the paper has none."""

    @property
    def printed(self) -> str:
        """The paper's figure with its unit, which the paper puts in the row label."""
        return f"{self.paper} %" if self.paper and self.unit == "share" else self.paper

    @property
    def interval(self) -> str:
        """Both ends of the interval, formatted; empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{number(self.low, self.unit)} to {number(self.high, self.unit)}"


@dataclass(frozen=True)
class Line:
    """One figure for every method."""

    environment: str
    heading: str
    key: str
    label: str
    cells: Mapping[str, PaperCell]
    """Cells by method: the table's own in its order, then methods of these runs that it has no place for."""


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables."""

    number: int
    lines: tuple[Line, ...]

    @property
    def title(self) -> str:
        """The title, such as ``Table 4. Closing operations of Countdown-Stepwise successes``."""
        return f"{NAMES.get(self.number, f'Table {self.number}')}. {TITLES[self.number]}"


def paper_tables(
    by_method: Mapping[str, Mapping[str, MethodEpisodes]], panels: Mapping[str, Sequence[PaperPanel]]
) -> list[PaperTable]:
    """The tables that have rows for the played environments, by number: environment to method to its episodes
    (at least one), and environment to panels."""
    lines: dict[int, list[Line]] = {}
    for name, played in by_method.items():
        for panel in panels[name]:
            lines.setdefault(panel.table, []).extend(panel_lines(name, panel, played))
    return [PaperTable(number, tuple(lines[number])) for number in sorted(lines) if lines[number]]


def panel_lines(
    environment: str, panel: PaperPanel, by_method: Mapping[str, MethodEpisodes]
) -> Iterator[Line]:
    """An environment's lines of one table."""
    found = {method: {f.key: f for f in panel.figures(played)} for method, played in by_method.items()}
    some = next(iter(by_method.values()))
    for key, first in next(iter(found.values())).items():
        printed = panel.printed(key, some) if panel.printed else paper_row(panel.table, environment, key)
        cells = {
            method: cell(found[method][key], paper)
            if method in found
            else PaperCell(unit=first.unit, paper=paper)
            for method, paper in places(printed, found).items()
        }
        label = f"{first.label}, steps" if first.unit == "steps" else first.label
        yield Line(environment=environment, heading=panel.heading, key=key, label=label, cells=cells)


def places(printed: Mapping[str, str], found: Iterable[str]) -> dict[str, str]:
    """Every method that has a place in a line, to the paper's figure: the table's own, then the others that
    were found."""
    return {**printed, **{method: "" for method in found if method not in printed}}


def paper_row(table: int, environment: str, key: str) -> dict[str, str]:
    """The paper's figure for each method as printed; empty if the paper has none."""
    printed = _paper_figures().get((table, environment, key), {})
    return {method: printed.get(method, "") for method in METHODS}


def printed_keys(table: int, environment: str) -> list[str]:
    """The keys of an environment's rows of which the paper prints a figure in this table."""
    return [key for number, name, key in _paper_figures() if (number, name) == (table, environment)]


def cell(figure: BehaviorFigure, paper: str) -> PaperCell:
    """A figure as a cell."""
    if figure.value is None:
        return PaperCell("none", unit=figure.unit, episodes=figure.episodes, paper=paper)
    text = number(figure.value, figure.unit)
    if figure.std is not None:
        text += f" ± {100 * figure.std:.1f}"
    if figure.unit == "count":
        text += f" of {figure.episodes:,} ({figure.value / figure.episodes:.1%})"
    return PaperCell(
        text=text,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        unit=figure.unit,
        episodes=figure.episodes,
        paper=paper,
    )


def number(value: float, unit: str) -> str:
    """A figure as the tables show it: shares in percent, counts whole, everything else with 2 decimals."""
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if unit == "count" else f"{value:.2f}"


@cache
def _paper_figures() -> dict[tuple[int, str, str], dict[str, str]]:
    """(table, environment, figure) to method to the paper's printed figure."""
    frame = pl.read_csv(_PAPER_FILE.read_bytes(), infer_schema=False).with_columns(pl.all().fill_null(""))
    return {
        (int(row.pop("table")), row.pop("environment"), row.pop("figure")): row
        for row in frame.iter_rows(named=True)
    }
