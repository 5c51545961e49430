"""A plan of two methods and two benchmarks, and made-up records of its runs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import yaml

from skillpress.evaluation.study.plan import Plan, read_plan
from skillpress.pipeline.study.record import RecordedRun
from skillpress.pipeline.study.runs import PlannedRun, planned_runs

REPOSITORY = Path(__file__).parents[3]
SHARED = {
    "benchmarks": {
        name: {
            "words": name,
            "base": base,
            "seeds": [10, 11],
            "outcome": "pass_at_1",
            "secondary": ["within_5"],
            "margin": 0.01,
        }
        for name, base in (("small", ["smoke"]), ("large", ["lag"]))
    },
    "methods": {
        "grpo": {"words": "plain", "overlays": ["grpo"]},
        "segcost": {"words": "phrases", "overlays": ["segcost"]},
        "round_length": {"words": "length", "overlays": ["round_length"]},
        "segcost_no_buffer": {"words": "phrases of the batch", "overlays": ["segcost_no_buffer"]},
    },
}
QUESTION = {
    "title": "Which?",
    "words": "Which of them.",
    "runs": {"small": ["grpo", "segcost"], "large": ["grpo", "segcost"]},
    "families": {"order": [{"first": "grpo", "second": "segcost", "expect": "higher"}]},
    "counts_as_yes": "Higher.",
    "counts_as_no": "Lower.",
}


def write_plan(folder: Path, **changes: object) -> Path:
    """A plan's folder; ``changes`` replace keys of its question."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.yaml").write_text(yaml.safe_dump(SHARED, sort_keys=False))
    (folder / "q1_which.yaml").write_text(yaml.safe_dump({**QUESTION, **changes}, sort_keys=False))
    return folder


def runs_of(plan: Plan) -> list[PlannedRun]:
    return planned_runs(plan, plan.chosen(), REPOSITORY)


def tiny_runs(folder: Path) -> list[PlannedRun]:
    return runs_of(read_plan(write_plan(folder)))


def recorded(run: PlannedRun, seconds: float = 60.0, resumed: bool = False) -> RecordedRun:
    return RecordedRun(
        id=run.name,
        benchmark=run.benchmark,
        method=run.method,
        seed=run.seed,
        params=run.params,
        revision="abc",
        machine="any",
        finished="2026-01-01T00:00:00+00:00",
        wall_seconds=seconds,
        resumed=resumed,
        checkpoint={"rule": "last", "step": 4},
        curve={"step": [4.0], "success": [0.5]},
        probes={},
        behavior={"trained": {"9/success_length": [3.5, 2, "steps"]}},
    )


def outcomes(*won_at: list[int]) -> pl.DataFrame:
    """Test tasks a, b ... and the numbers of steps in which every policy won them."""
    lists = pl.Series(list(won_at), dtype=pl.List(pl.UInt8))
    tasks = [chr(ord("a") + place) for place in range(len(won_at))]
    kinds = ["easy"] * len(tasks)
    return pl.DataFrame(
        {"task_id": tasks, "kind": kinds, "explorer": lists, "start": lists, "trained": lists}
    )
