"""The table of few tasks on the page of evaluation equals the simulation's record, before and now."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.storage import read_json

ROWS = {
    "level_over_trainings": "success of a method, t interval over seeds and tasks",
    "difference_over_trainings": "difference of two methods, t interval over seeds and tasks",
    "difference_over_tasks": "difference of two policies, over tasks",
    "share_of_steps": "share of steps",
    "mean_of_episodes": "mean of episodes",
    "success_rate": "success of one run, Wilson's",
}


@pytest.mark.parametrize("figure", ROWS)
def test_a_row_is_what_was_recorded(repository: Path, figure: str) -> None:
    page = (repository / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for name, when in (("interval_coverage_before", "before"), ("interval_coverage", "now")):
        cases = read_json(repository / "benchmarks" / "results" / f"{name}.json")[figure].values()
        cells = []
        for tasks in ("5", "10", "20", "50"):
            shares = [100 * case[tasks] for case in cases]
            mean, worst = sum(shares) / len(shares), min(shares)
            cells.append(f"{mean:.0f} ({worst:.0f})" if len(shares) > 1 else f"{mean:.0f}")
        assert f"| {ROWS[figure]} | {when} | {' | '.join(cells)} |" in page
