"""The committed preferences of SegCost and its controls, as ``calculate.py`` made them, and their tables.

``controls.json`` holds ``{cell: {naming: {score: {"preference": number, "sign": "+" | "0" | "-"}}}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from docs.committed import read_committed
from docs.made import bullet
from docs.words import table
from studies.critical.predictions import Prediction, in_table

FILE = "controls.json"
TABLES = "studies/critical/tables.md#controls-and-names"
SEGCOST, PHI = "segcost", "phi"
CONTROLS = {
    "bigram": "predictable skills",
    "distinct": "few names",
    "shuffled": "frequent names in any order",
    "other_tasks": "phrases of other tasks",
    "own_task": "phrases of its own task",
}
"""A control to what its cheap successes are."""
NAMINGS = tuple(
    f"{routine}/{shortcut}" for routine, shortcut in product(("coarse", "verb", "fine"), ("own", "one"))
)
"""What the naming of every cell is varied over (``naming.py``)."""
SWEPT = "equal"
"""The cell in which granularity is varied step by step."""
LEVELS, COUNTS = ("one", "coarse", "verb", "fine"), ("one", "2", "3", "4", "6", "own")
SWEEP = tuple(f"{level}/{count}" for level, count in product(LEVELS, COUNTS))

Controls = Mapping[str, Mapping[str, Mapping[str, Prediction]]]
"""Cell to naming to score to what it prefers."""


def read_controls(folder: Path) -> Controls:
    """The committed preferences, empty if there is no file yet; ``StorageError`` for a wrong one."""
    return read_committed(
        folder / FILE,
        dict[str, dict[str, dict[str, Prediction]]],
        "python -m studies.critical.controls.calculate makes it",
    )


def controls_table(known: Controls) -> Iterator[str]:
    """What SegCost and each control prefer, under the cell's own names and under the others."""
    rows = [
        (f"`{cell}`", "its own" if naming == PHI else f"`{naming}`", *_row(of_naming[naming]))
        for cell, of_naming in known.items()
        for naming in (PHI, *NAMINGS)
    ]
    heads = ("cell", "names", "`segcost`", *(f"`{name}`: {words}" for name, words in CONTROLS.items()))
    yield from table(heads, rows)
    yield from ("", "How often a control has the sign of SegCost:", "")
    counted = [
        (f"`{name}`", *(_agreement(known, name, namings) for namings in ((PHI,), NAMINGS)))
        for name in CONTROLS
    ]
    yield from table(("control", "own names", "other names"), counted)


def controls_in_short(known: Controls) -> Iterator[str]:
    """What names decide, and which control has SegCost's sign, in a bullet of the page."""
    if not known:
        yield "No control is calculated yet."
        return
    signs = ", ".join(f"`{name}` {_agreement(known, name, NAMINGS)}" for name in CONTROLS)
    yield from bullet(
        "**Is it reuse, or the names?** Both, by calculation and by [training](#the-second-plan). By",
        "calculation other names alone change what SegCost prefers",
        f"in {listed(changed(known))}. Where the shortcut's actions share one name, it prefers routines in",
        f"{listed(for_one_name(known))} only. [Controls](../{TABLES}) have its sign, over cells and names:",
        f"{signs}.",
    )


def listed(cells: Sequence[str]) -> str:
    """Cells such as ``a``, ``b`` and ``c``."""
    quoted = [f"`{cell}`" for cell in cells]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:]))) or "no cell"


def for_one_name(known: Controls) -> list[str]:
    """The cells in which SegCost prefers the routine although the shortcut has a single name."""
    one = [naming for naming in NAMINGS if naming.endswith("/one")]
    return [
        cell
        for cell, of_naming in known.items()
        if any(of_naming[naming][SEGCOST].sign == "+" for naming in one)
    ]


def _row(of_score: Mapping[str, Prediction]) -> Iterator[str]:
    yield from (in_table(of_score.get(score)) for score in (SEGCOST, *CONTROLS))


def _agreement(known: Controls, control: str, namings: tuple[str, ...]) -> str:
    pairs = [
        (of_naming[naming][control].sign, of_naming[naming][SEGCOST].sign)
        for of_naming in known.values()
        for naming in namings
    ]
    return f"{sum(mine == others for mine, others in pairs)} of {len(pairs)}"


def changed(known: Controls) -> list[str]:
    """The cells in which SegCost prefers the routine under one naming of :data:`NAMINGS` and the shortcut
    under another."""
    return [
        cell
        for cell, of_naming in known.items()
        if {"+", "-"} <= {of_naming[naming][SEGCOST].sign for naming in NAMINGS}
    ]


def sweep_table(known: Controls) -> Iterator[str]:
    """What SegCost prefers in one cell, from a single name to one for every action."""
    of_naming = known.get(SWEPT, {})
    rows = [
        (f"`{level}`", *(in_table(of_naming.get(f"{level}/{count}", {}).get(SEGCOST)) for count in COUNTS))
        for level in LEVELS
    ]
    yield from table(("routine's names", *(f"shortcut's: {count}" for count in COUNTS)), rows)
