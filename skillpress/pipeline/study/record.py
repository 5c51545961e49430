"""The record of a finished run: enough for every table and figure of the study, but no weights.

For each test task and policy it keeps the steps at which each episode was won. It also keeps a few figures of
the training curve, and the behaviour figures of the paper's tables, computed by the code of these tables.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from skillpress.core.trajectory import Task
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps, episode_table
from skillpress.experiment.params import Params
from skillpress.pipeline.files import POLICIES, PROBES, START, TRAINED
from skillpress.pipeline.finished.results import curves
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.revision import revision
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.runs import PlannedRun

CURVE_ROWS = 16
"""Number of rows kept from a training curve: evenly spaced, including the last one."""
DIGITS = 5
"""Number of significant digits kept in figures."""
UNKEPT = r"^(seconds/|time_share/|mismatch/|actions/|scorer_packed|staleness|.*_per_)"
"""Columns of the curve that describe the machine and the engine."""

Columns = Mapping[str, Sequence[Any]]
"""A table, column by column, so that each name occurs once; None where a row has no value."""


@dataclass(frozen=True)
class RecordedRun:
    """A finished run, without the outcomes of its test tasks."""

    id: str
    """Unique name such as ``countdown-grpo-seed10``, with a number if an older run has it."""
    benchmark: str
    method: str
    seed: int
    params: Mapping[str, Any]
    """The resolved parameters, by the version that made the run."""
    revision: str
    """The code's revision when the run was made; it does not decide whether the run counts."""
    machine: str
    finished: str
    """When it finished, in UTC."""
    wall_seconds: float
    """Seconds of the attempt that finished it."""
    resumed: bool
    """Whether an earlier attempt had done a part, so that ``wall_seconds`` is less than the total."""
    checkpoint: Mapping[str, Any]
    """The weights that were evaluated, and the rule that chose them."""
    curve: Columns
    """Rows of the training curve, with ``step``."""
    probes: Columns
    """Results of ``training.probe`` at every probed step, for each whole split; empty without probes."""
    behavior: Mapping[str, Mapping[str, Sequence[Any]]]
    """Policy to ``<paper's table>/<figure>`` to value (None without episodes), their number, and unit."""


def outcomes_of(run: FinishedRun) -> pl.DataFrame:
    """A row per test task: ``task_id``, ``kind`` (its class), and a column per policy. That column lists, run
    by run and vote by vote, the step at which the episode was won; 0 if it was not won.

    Raises:
        UserError: the evaluation is not complete.
    """
    table = pl.DataFrame({"task_id": [t.task_id for t in run.tasks], "kind": [kind_of(t) for t in run.tasks]})
    for policy in POLICIES:
        table = table.join(_won_at(run.steps(policy)).rename({"won_at": policy}), on="task_id", how="left")
    return table


def kind_of(task: Task) -> str:
    """The task's class: its stratum, then the facts in its description (``simple/trap``)."""
    return "/".join([task.stratum, *sorted(name for name, value in task.spec.items() if value is True)])


def record_of(planned: PlannedRun, run: FinishedRun, how: Mapping[str, Any]) -> RecordedRun:
    """The run's record; ``how`` has ``revision``, ``wall_seconds`` and ``resumed``."""
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
    """Rows of the training curve, without columns that describe the machine; empty without training."""
    curve = next((curve.frame for curve in curves(run, method)), pl.DataFrame())
    kept = curve.select(name for name in curve.columns if not re.match(UNKEPT, name))
    return kept.reverse().gather_every(max(1, kept.height // CURVE_ROWS)).reverse()


def probes_of(run: FinishedRun) -> pl.DataFrame:
    """Rows of results/probes.parquet about whole splits; empty if the run had no probes."""
    path = run.folder / PROBES
    if not path.exists():
        return pl.DataFrame()
    return pl.read_parquet(path).filter(pl.col("stratum").is_null()).drop("stratum")


def columns_of(table: pl.DataFrame) -> dict[str, list[Any]]:
    """A table's columns, with figures of ``DIGITS`` digits."""
    rounded = table.with_columns(pl.selectors.float().round_sig_figs(DIGITS))
    return rounded.to_dict(as_series=False)


def behavior_of(
    steps: EvaluationSteps, tasks: Sequence[Task], params: Params
) -> dict[str, tuple[float | None, int, str]]:
    """``<paper's table>/<figure>`` to value, episodes and unit, from this policy's rows in these tables."""
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


def code_revision() -> str:
    """The commit, with ``-dirty`` if files differ outside the documentation and ``studies``, which has the
    record."""
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", ".", ":!docs", ":!studies"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return revision().removesuffix("-dirty") + ("-dirty" if changed.stdout.strip() else "")


def _won_at(steps: EvaluationSteps) -> pl.DataFrame:
    at = pl.when("won").then("length").otherwise(0).cast(pl.UInt8)
    episodes = episode_table(steps).sort(EPISODE_KEY).with_columns(at=at)
    return episodes.group_by("task_id", maintain_order=True).agg(won_at="at")


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
