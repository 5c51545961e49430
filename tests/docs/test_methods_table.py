"""The comparison of algorithms in docs/methods.md equals the benchmark's result, with every algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.methods_table import FIGURES, PAGE, comparison, page
from skillpress.core.registry import ALGORITHMS
from skillpress.core.storage import read_json


def test_the_page_is_made_from_the_committed_figures(repository: Path) -> None:
    assert (repository / PAGE).read_text() == page(repository), "run python -m docs.methods_table"


def test_every_algorithm_was_compared_on_equal_terms(repository: Path) -> None:
    algorithms = read_json(repository / FIGURES)["algorithms"]
    assert set(algorithms) == set(ALGORITHMS)
    for entry in algorithms.values():
        assert set(entry["tried"]) == set(algorithms["grpo"]["tried"])
        assert len(entry["trainings"]) == 3


def around(mean: float, p: float | None = None) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.01, "high": mean + 0.01, "p": p}


def made_up() -> dict[str, Any]:
    """Two algorithms beside GRPO; the first is better by two points."""

    def entry(mean: float, p: float | None) -> dict[str, Any]:
        less = {"pass_at_1": around(mean - 0.8, p), "area": around(mean - 0.8, p)}
        return {
            "pass_at_1": around(mean),
            "area": around(mean / 2),
            "less_grpo": None if p is None else less,
        }

    algorithms = {"grpo": entry(0.8, None), "ppo": entry(0.7, 0.5), "rloo": entry(0.82, 0.02)}
    start = {"pass_at_1": around(0.6), "area": around(0.3)}
    return {"start": start, "algorithms": algorithms}


def test_the_best_comes_first_and_p_values_are_corrected_for_how_many_there_are() -> None:
    rows = list(comparison(made_up()))[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| `rloo`", "| `grpo`", "| `ppo`", "| imitation start"]
    assert rows[0].split(" | ")[2:4] == ["+2.0 (+1.0 to +3.0)", "0.04"]
    assert rows[1].split(" | ")[2:4] == ["–", "–"]
