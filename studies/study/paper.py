"""The paper's tables from the recorded runs, each figure beside the paper's.

Ours are means over training seeds with the 95% t interval over seeds; Table 1's is that over seeds and
tasks. The paper's are in brackets; its models have a thousand times the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt
from statistics import mean, stdev

from docs.words import NONE, table
from skillpress.evaluation.paper.layout import METHODS, TITLES, paper_row
from studies.statistics.behavior_signs import TRAINED, Sign, signs
from studies.study.results import FLOORS, Results

BEHAVIOR = (2, 4, 5, 6, 7, 8, 9)
PRINTED = BEHAVIOR[1:]
"""The tables that a page shows: every figure of Table 2 is one of Tables 6, 8 and 9 too."""
SCALES = {"": "without the group's deviation in the advantage", "_std": "with it, as in the paper"}
"""What a method's name ends with to what it means."""
ENVIRONMENTS = {"countdown": "countdown", "cooking": "textworld_cooking", "alfworld": "alfworld"}
"""The plan's benchmarks to the names of their environments, under which the paper's figures are kept."""
SPLITS = {"alfworld": ("iid", "ood"), "cooking": ("", "simple", "hard"), "countdown": ("",)}
"""The columns of Table 1 on a benchmark: classes of tasks, empty for all."""


def table_1(results: Results) -> Iterator[str]:
    """Success by method, with the floors, for both scales."""
    columns = [(benchmark, split) for benchmark, splits in SPLITS.items() for split in splits]
    heads = [f"{results.plan.benchmarks[b].words}{f', {split}' if split else ''}" for b, split in columns]
    rows = [(FLOORS[name], *(_success(results, name, *column) for column in columns)) for name in FLOORS]
    for ending in SCALES:
        for method in TRAINED:
            cells = [_success(results, method + ending, *column) for column in columns]
            rows.append((METHODS[method] + (", with deviation" if ending else ""), *cells))
    yield from ("", *table(("method", *heads), rows))


def _success(results: Results, method: str, benchmark: str, split: str) -> str:
    """Ours with its interval over trainings, and the paper's."""
    level = results.level(benchmark, method, results.plan.benchmarks[benchmark].outcome, split)
    known = {"start": "vanilla", "explorer": "explorer"}.get(method, method.removesuffix("_std"))
    paper = paper_row(1, ENVIRONMENTS[benchmark], split or "all")[known]
    ours = level.in_percent() if level else NONE
    return f"{ours} [{paper}]" if paper else ours


def behavior(results: Results, number: int, ending: str) -> Iterator[str]:
    """One of the Tables 2 and 4 to 9 at one scale; nothing where no run has a figure of it."""
    rows = []
    for benchmark, environment in ENVIRONMENTS.items():
        found = figures(results, benchmark, ending)
        for name in found:
            if name.startswith(f"{number}/"):
                rows.append((_label(results, benchmark, name), *_row(environment, name, found[name])))
    if rows:
        yield from ("", f"Table {number}. {TITLES[number]}; {SCALES[ending]}", "")
        yield from table(("figure", *(METHODS[name] for name in METHODS if name != "explorer")), rows)


def figures(results: Results, benchmark: str, ending: str) -> dict[str, dict[str, dict[int, float]]]:
    """``<table>/<figure>`` to method to seed to value: shares in percent, counts as percent of episodes."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for method in TRAINED:
        for seed, run in results.runs.get((benchmark, method + ending), {}).items():
            for policy, name in (("start", "vanilla"), ("trained", method)):
                for key, (value, episodes, unit) in run.behavior[policy].items():
                    if value is not None:
                        shown = _shown(value, episodes, unit)
                        found.setdefault(key, {}).setdefault(name, {})[seed] = shown
    return found


def _shown(value: float, episodes: int, unit: str) -> float:
    if unit == "count":
        return 100 * value / episodes
    return 100 * value if unit == "share" else value


def _label(results: Results, benchmark: str, name: str) -> str:
    return f"{results.plan.benchmarks[benchmark].words}: {name.partition('/')[2].replace('_', ' ')}"


def _row(environment: str, name: str, methods: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    table_number, _, figure = name.partition("/")
    paper = paper_row(int(table_number), environment, figure)
    for method in METHODS:
        if method != "explorer":
            ours = over_seeds(list(methods.get(method, {}).values()))
            yield f"{ours} [{paper[method]}]" if paper[method] else ours


def over_seeds(values: list[float]) -> str:
    """The mean and half of its 95% t interval over seeds."""
    if not values:
        return NONE
    if len(values) < 2:
        return f"{mean(values):.1f}"
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / sqrt(len(values))
    return f"{mean(values):.1f} ± {half:.1f}"


def directions(results: Results, ending: str) -> list[Sign]:
    """Question 7 on all benchmarks at one scale."""
    every = []
    for benchmark, environment in ENVIRONMENTS.items():
        planned = len(results.plan.benchmarks[benchmark].seeds)
        found = {
            name: methods
            for name, methods in figures(results, benchmark, ending).items()
            if int(name.partition("/")[0]) in BEHAVIOR
        }
        every += signs(environment, found, planned)
    return every


def direction_table(results: Results) -> Iterator[str]:
    """How many differences of each table have which direction, and those that have the other."""
    for ending, words in SCALES.items():
        found = directions(results, ending)
        if not found:
            continue
        yield from (
            "",
            f"*{words[0].upper()}{words[1:]}*: differences of two methods, by the sign that they have here.",
            "",
        )
        kinds = list(dict.fromkeys(sign.direction for sign in found))
        rows = []
        for number in sorted({sign.table for sign in found}):
            mine = [sign.direction for sign in found if sign.table == number]
            rows.append((f"Table {number}", *(str(mine.count(kind)) for kind in kinds)))
        yield from table(("", *kinds), rows)
        for sign in found:
            if sign.direction == "the other":
                yield from ("", _named(sign))


def _named(sign: Sign) -> str:
    assert sign.difference is not None and sign.low is not None and sign.high is not None
    figure = sign.figure.replace("_", " ")
    return (
        f"- Table {sign.table}, {sign.environment}, {figure}: `{sign.second}` less `{sign.first}` is "
        f"{sign.difference:+.1f} ({sign.low:+.1f} to {sign.high:+.1f}), the paper's {sign.paper:+.1f}"
    )
