"""How much the buffer added to the corpora of the study's runs, from their recorded curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean
from typing import Any

from docs.words import table
from skillpress.pipeline.study.record import RecordedRun
from studies.study.results import Results

BUFFERED = "segcost"
"""The method of which the buffer is a part."""
PAPER = ("the paper, all benchmarks", "128", "–", "256", "50 or more")
"""Its steps play 16 tasks 8 times each (``params/paper_countdown.yaml``). If all win, half of the corpus is
new."""


def buffers(results: Results) -> Iterator[str]:
    """A row per benchmark: the successes of a step, the buffer, and the buffer's share of the corpus."""
    rows = []
    for benchmark, entry in results.plan.benchmarks.items():
        runs = list(results.runs.get((benchmark, BUFFERED), {}).values())
        shares = [share for run in runs if (share := earlier_share(run)) is not None]
        if shares:
            won = mean(mean(run.curve["success"]) for run in runs)
            episodes, buffer = episodes_of_a_step(runs[0].params), runs[0].params["skills"]["buffer"]
            rows.append(
                (
                    f"{entry.words}, {len(shares)} seeds",
                    str(episodes),
                    f"{won * episodes:.0f}",
                    str(buffer),
                    f"{100 * mean(shares):.0f} ({100 * min(shares):.0f} to {100 * max(shares):.0f})",
                )
            )
    if not rows:
        yield "No run with the buffer is recorded yet."
        return
    heads = ("", "episodes of a step", "of them won", "buffer", "the buffer's part of a corpus, % (by seed)")
    yield from table(heads, [*rows, PAPER])


def earlier_share(run: RecordedRun) -> float | None:
    """The mean over recorded steps of the part of Algorithm 1's corpus that earlier steps made; None if no
    step after the first is recorded.

    Of a step with n successes it is the buffer's room, less n, as far as earlier steps filled it. Successes
    without any skill are counted too, of which there are hardly any.
    """
    buffer, episodes = run.params["skills"]["buffer"], episodes_of_a_step(run.params)
    shares, curve = [], run.curve
    usual = mean(curve["success"]) * episodes if curve.get("success") else 0.0
    for step, success in zip(curve.get("step", ()), curve.get("success", ()), strict=True):
        new = success * episodes
        earlier = min(max(0.0, buffer - new), (step - 1) * usual)
        if step > 1 and earlier + new:
            shares.append(earlier / (earlier + new))
    return mean(shares) if shares else None


def episodes_of_a_step(params: Mapping[str, Any]) -> int:
    """The most episodes that a training step with these parameters plays."""
    return int(params["training"]["tasks_per_step"] * params["training"]["rollouts_per_task"])
