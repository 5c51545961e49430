"""What the record keeps of a finished run: enough for every table and figure of the study, and no weights.

Per test task and policy the steps at which each episode was won; few figures of the training curve; and the
behaviour figures of the paper's tables, by the code that makes these tables of any run.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.trajectory import Task
from skillpress.experiment.params import Params
from skillpress.measure.evaluation.episodes import EPISODE_KEY, EvaluationSteps, episode_table
from skillpress.measure.paper import environment_figures
from skillpress.measure.paper.method_episodes import MethodEpisodes
from skillpress.pipeline.files import POLICIES, PROBES, START, TRAINED
from skillpress.pipeline.finished.results import curves
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.revision import revision
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.runs import PlannedRun

CURVE_ROWS = 16
"""Rows kept of a training curve, evenly spaced, the last one included."""
DIGITS = 5
"""Significant ones that are kept of a figure."""
UNKEPT = r"^(seconds/|time_share/|mismatch/|actions/|scorer_packed|staleness|.*_per_)"
"""Columns of the curve that tell of the machine and the engine."""

Columns = Mapping[str, Sequence[Any]]
"""A table, column by column, which says each name once; None where a row has no value."""


@dataclass(frozen=True)
class RecordedRun:
    """A finished run, without the outcomes of its test tasks."""

    id: str
    """Name of the run, unique in the record: ``countdown-grpo-seed10``, with a number where the plan has
    changed since and another run has that name."""
    benchmark: str
    method: str
    seed: int
    params: Mapping[str, Any]
    """Resolved, as of the version that made it."""
    revision: str
    """Of the code that made it; it does not decide whether the run counts."""
    machine: str
    finished: str
    """When, UTC."""
    wall_seconds: float
    """Of the attempt that finished it."""
    resumed: bool
    """Whether an earlier attempt had done a part, so that ``wall_seconds`` is less than the whole."""
    checkpoint: Mapping[str, Any]
    """Which weights were evaluated, and by which rule."""
    curve: Columns
    """Rows of the training curve with ``step``."""
    probes: Columns
    """What ``training.probe`` found at every probed step, of each split as a whole; empty without one."""
    behavior: Mapping[str, Mapping[str, Sequence[Any]]]
    """Policy to ``<paper's table>/<figure>`` to its value (None without an episode), the number of episodes
    behind it, and its unit."""


def outcomes_of(run: FinishedRun) -> pl.DataFrame:
    """A row per test task: ``task_id``, ``kind`` (its class), and a column per policy that lists, run by run
    and vote by vote, the steps at which the episode was won; 0 where it was not.

    Raises:
        UserError: the evaluation is not complete.
    """
    table = pl.DataFrame({"task_id": [t.task_id for t in run.tasks], "kind": [kind_of(t) for t in run.tasks]})
    for policy in POLICIES:
        table = table.join(_won_at(run.steps(policy)).rename({"won_at": policy}), on="task_id", how="left")
    return table


def kind_of(task: Task) -> str:
    """The task's class: its stratum, then the facts that its description states (``simple/trap``)."""
    return "/".join([task.stratum, *sorted(name for name, value in task.spec.items() if value is True)])


def record_of(planned: PlannedRun, run: FinishedRun, how: Mapping[str, Any]) -> RecordedRun:
    """The run's record.

    Args:
        how: ``revision``, ``wall_seconds`` and ``resumed``.
    """
    return RecordedRun(
        id=planned.name,
        benchmark=planned.benchmark,
        method=planned.method,
        seed=planned.seed,
        params=planned.params,
        machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        checkpoint=asdict(run.checkpoint),
        curve=columns_of(curve_of(run, planned.method)),
        probes=columns_of(probes_of(run)),
        behavior={
            policy: behavior_of(run.steps(policy), run.tasks, run.params) for policy in (START, TRAINED)
        },
        **how,
    )


def curve_of(run: FinishedRun, method: str) -> pl.DataFrame:
    """``CURVE_ROWS`` of the training curve's rows, without what tells of the machine; none where nothing was
    trained."""
    curve = next((curve.frame for curve in curves(run, method)), pl.DataFrame())
    kept = curve.select(name for name in curve.columns if not re.match(UNKEPT, name))
    return kept.reverse().gather_every(max(1, kept.height // CURVE_ROWS)).reverse()


def probes_of(run: FinishedRun) -> pl.DataFrame:
    """Rows of results/probes.parquet of whole splits; none where the run was not probed."""
    path = run.folder / PROBES
    if not path.exists():
        return pl.DataFrame()
    return pl.read_parquet(path).filter(pl.col("stratum").is_null()).drop("stratum")


def columns_of(table: pl.DataFrame) -> dict[str, list[Any]]:
    """A table's columns with ``DIGITS`` of their figures."""
    rounded = table.with_columns(pl.selectors.float().round_sig_figs(DIGITS))
    return rounded.to_dict(as_series=False)


def behavior_of(
    steps: EvaluationSteps, tasks: Sequence[Task], params: Params
) -> dict[str, tuple[float | None, int, str]]:
    """``<paper's table>/<figure>`` to value, episodes and unit, of its rows in these tables."""
    played = MethodEpisodes(
        steps=steps,
        tasks={task.task_id: task for task in tasks},
        votes=params.evaluation.votes,
        max_steps=params.environment.max_steps,
    )
    return {
        f"{panel.table}/{figure.key}": (_round(figure.value), figure.episodes, figure.unit)
        for panel in environment_figures(params.environment.name).panels
        for figure in panel.figures(played)
    }


def code_revision(root: Path = ROOT) -> str:
    """The commit, with ``-dirty`` when files other than the documentation, which holds the record, differ."""
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", ".", ":!docs"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return revision().removesuffix("-dirty") + ("-dirty" if changed.stdout.strip() else "")


def _won_at(steps: EvaluationSteps) -> pl.DataFrame:
    at = pl.when("won").then("length").otherwise(0).cast(pl.UInt8)
    episodes = episode_table(steps).sort(EPISODE_KEY).with_columns(at=at)
    return episodes.group_by("task_id", maintain_order=True).agg(won_at="at")


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
