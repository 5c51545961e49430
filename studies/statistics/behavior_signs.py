"""Do the behaviour figures move between two methods in the direction that the paper's tables show?

For each figure that the paper printed for two methods: the sign of its difference there, and ours with a t
interval over seeds. Counts are compared as shares of their totals. Holm's correction covers the differences
of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt
from statistics import mean, stdev

from skillpress.core.distributions import student_cdf, student_quantile
from skillpress.evaluation.paper.layout import METHODS, UNTRAINED, paper_row
from skillpress.evaluation.study.holm import holm

TRAINED = tuple(name for name in METHODS if name not in UNTRAINED)
LEVEL = 0.05
SAME, OTHER, OPEN, MISSING = "the paper's", "the other", "cannot be told", "runs are missing"
Values = Mapping[int, float]
"""Seed to the value of a figure."""


@dataclass(frozen=True)
class Sign:
    """The difference of one figure between two methods."""

    table: int
    environment: str
    figure: str
    first: str
    second: str
    paper: float
    """The paper's difference, in the unit of the printed figure."""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    seeds: int = 0
    corrected: float | None = None
    direction: str = MISSING


def printed(text: str) -> float | None:
    """The number that the paper printed; a count becomes the share of its total, in percent."""
    if found := re.fullmatch(r"([\d.]+) of ([\d.]+)", text):
        return 100 * float(found[1]) / float(found[2])
    found = re.match(r"[\d.]+", text)
    return float(found[0]) if found else None


def signs(environment: str, found: Mapping[str, Mapping[str, Values]], planned: int) -> list[Sign]:
    """All comparisons of an environment, corrected within each table.

    Args:
        found: ``<table>/<figure>`` to method to the figure of each seed.
        planned: the seeds that the plan asks for; with fewer there is no direction.
    """
    every = [sign for name, methods in found.items() for sign in _pairs(environment, name, methods)]
    done: list[Sign] = []
    for table in sorted({sign.table for sign in every}):
        mine = [sign for sign in every if sign.table == table]
        known = [1.0 if sign.p is None or sign.seeds < planned else sign.p for sign in mine]
        for sign, value in zip(mine, holm(known), strict=True):
            done.append(_directed(replace(sign, corrected=value)) if sign.seeds >= planned else sign)
    return done


def _pairs(environment: str, name: str, methods: Mapping[str, Values]) -> Iterator[Sign]:
    table, _, figure = name.partition("/")
    paper = {method: printed(text) for method, text in paper_row(int(table), environment, figure).items()}
    for first, second in combinations(TRAINED, 2):
        theirs = (paper[first], paper[second])
        if int(table) == 1 or theirs[0] is None or theirs[1] is None or theirs[0] == theirs[1]:
            continue
        ours = (methods.get(first, {}), methods.get(second, {}))
        sign = Sign(
            table=int(table),
            environment=environment,
            figure=figure,
            first=first,
            second=second,
            paper=theirs[1] - theirs[0],
        )
        yield _measured(sign, [ours[1][seed] - ours[0][seed] for seed in sorted(ours[0].keys() & ours[1])])


def _measured(sign: Sign, differences: Sequence[float]) -> Sign:
    count = len(differences)
    if count < 2:
        return replace(sign, difference=mean(differences) if count else None, seeds=count)
    middle, error = mean(differences), stdev(differences) / sqrt(count)
    if error == 0:
        return replace(sign, difference=middle, seeds=count)
    half = student_quantile(count - 1, 0.975) * error
    p = 2 * student_cdf(count - 1, -abs(middle) / error)
    return replace(sign, difference=middle, low=middle - half, high=middle + half, p=p, seeds=count)


def _directed(sign: Sign) -> Sign:
    if sign.p is None or sign.difference is None or sign.corrected is None or sign.corrected >= LEVEL:
        return replace(sign, direction=OPEN)
    return replace(sign, direction=SAME if sign.difference * sign.paper > 0 else OTHER)
