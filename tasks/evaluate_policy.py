"""Stage: how good the trained policy is, compared with its start and a random explorer, on held-out tasks.

Every policy plays every test task exactly ``votes`` times in each of ``runs`` runs. The stage ``play_floors``
plays the episodes of the start and the explorer. The rollouts of all policies form one file, with columns for
the policy, the run and the training step whose weights played.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.rollout_files import join_rollouts, scan_rollouts
from skillpress.core.seeds import derive
from skillpress.core.storage import write_json
from skillpress.evaluation.statistics import compare, evaluate, evaluation_steps
from skillpress.evaluation.statistics.budget import budget_rows
from skillpress.evaluation.statistics.unplayed import refuse_unread
from skillpress.experiment.collection import play_of
from skillpress.pipeline.files import (
    BASE_POLICY,
    EVALUATION_ROLLOUTS,
    EXPLORER,
    FLOOR_ROLLOUTS,
    POLICIES,
    POLICY,
    RESULTS,
    SELECTED,
    START,
    TRAINED,
    load_tasks,
    write_curve,
)
from skillpress.pipeline.playing import play
from skillpress.training.loop.keeping.selected_checkpoint import read_selected

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage

PAIRS = ((EXPLORER, START), (EXPLORER, TRAINED), (START, TRAINED))
"""The planned comparisons, the second against the first."""


def main(stage: Stage) -> None:
    """Write the rollouts, results/evaluation.json, the headline figures and the budget curves."""
    params, section, own = stage.params, stage.params.evaluation, stage.store.folder / "trained.parquet"
    longest, seed = params.environment.max_steps, derive(params.seed, "compare")
    tasks, selected = load_tasks(params.environment)["test"], read_selected(SELECTED)
    play(stage, [play_of(params, tasks, TRAINED, POLICY, selected.step)], own)
    refuse_unread(scan_rollouts(own), section.accept_unread)
    join_rollouts(EVALUATION_ROLLOUTS, [FLOOR_ROLLOUTS, own])
    every = evaluation_steps(scan_rollouts(EVALUATION_ROLLOUTS))
    rollouts = {policy: every.filter(pl.col("policy") == policy) for policy in POLICIES}
    summaries = {
        policy: evaluate(played, tasks, runs=section.runs, votes=section.votes, max_steps=longest)
        for policy, played in rollouts.items()
    }
    comparisons = {
        f"{second} against {first}": compare(
            rollouts[first], rollouts[second], max_steps=longest, seed=seed, votes=section.votes
        )
        for first, second in PAIRS
    }
    figures = {policy: summary.headline() for policy, summary in summaries.items()}
    evaluation = {
        "checkpoint": asdict(selected),
        "policies": {policy: summary.to_json() for policy, summary in summaries.items()},
        "comparisons": {pair: asdict(comparison) for pair, comparison in comparisons.items()},
    }
    write_json(RESULTS / "evaluation.json", evaluation)
    write_json(RESULTS / "metrics.json", figures)
    write_curve(
        RESULTS / "budget.csv", budget_rows({policy: summary.budget for policy, summary in summaries.items()})
    )
    stage.run.log_summary({f"{policy}/{k}": v for policy, row in figures.items() for k, v in row.items()})
    stage.run.log_episodes(EVALUATION_ROLLOUTS, BASE_POLICY)
    stage.run.register_policy(POLICY)
