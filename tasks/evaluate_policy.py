"""Stage: how good the trained policy is, beside its start and a random explorer, on held-out tasks.

Every policy plays every test task exactly ``votes`` times in each of ``runs`` runs. The rollouts of
all policies are one file, in which ``group_id`` is ``policy/run`` and ``policy_version`` the training
step whose weights played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage

if TYPE_CHECKING:
    from skillpress.evaluation import EvaluationSummary
    from skillpress.interface import Agent
    from skillpress.trajectory import Task, Trajectory

EXPLORER, START, TRAINED = "explorer", "start", "trained"
"""The policies of every table."""
PAIRS = ((EXPLORER, START), (START, TRAINED))


def main(stage: Stage) -> None:
    """Write the rollouts, results/evaluation.json, the headline figures and the budget curves."""
    import polars as pl

    from skillpress.assembly import environment_of
    from skillpress.evaluation import compare, evaluate
    from skillpress.evaluation.weights import read_kept
    from skillpress.seeds import derive
    from skillpress.storage import write_json
    from skillpress.trajectory import scan_rollouts, write_rollouts
    from tasks.data import EVALUATION_ROLLOUTS, KEPT, RESULTS, load_tasks, write_curve
    from tasks.registry import register_policy

    params, section = stage.params, stage.params.evaluation
    longest = params.environment.max_steps
    bundle = environment_of(params)
    tasks = load_tasks(bundle)["test"]
    write_rollouts(EVALUATION_ROLLOUTS, play(stage, tasks))
    every = scan_rollouts(EVALUATION_ROLLOUTS)
    rollouts = {
        policy: every.filter(pl.col("group_id").str.starts_with(f"{policy}/"))
        for policy in (EXPLORER, START, TRAINED)
    }
    summaries = {
        policy: evaluate(
            played,
            tasks,
            runs=section.runs,
            votes=section.votes,
            max_steps=longest,
            behavior=bundle.behavior,
        )
        for policy, played in rollouts.items()
    }
    seed = derive(params.seed, "compare")
    comparisons = {
        f"{second} against {first}": compare(
            rollouts[first], rollouts[second], max_steps=longest, seed=seed, votes=section.votes
        )
        for first, second in PAIRS
    }
    figures = {policy: headline(summary) for policy, summary in summaries.items()}
    evaluation = {
        "checkpoint": asdict(read_kept(KEPT)),
        "policies": {policy: summary.to_json() for policy, summary in summaries.items()},
        "comparisons": {pair: asdict(comparison) for pair, comparison in comparisons.items()},
    }
    write_json(RESULTS / "evaluation.json", evaluation)
    write_json(RESULTS / "metrics.json", figures)
    write_curve(RESULTS / "budget.csv", budget_rows(summaries))
    stage.run.log_summary({f"{policy}/{k}": v for policy, row in figures.items() for k, v in row.items()})
    register_policy(stage)


def play(stage: Stage, tasks: Sequence[Task]) -> list[Trajectory]:
    """All episodes of all policies."""
    from skillpress.assembly import collector_of
    from skillpress.evaluation.weights import read_kept
    from skillpress.rollout import requests
    from tasks.data import KEPT

    section = stage.params.evaluation
    trajectories: list[Trajectory] = []
    with stage.progress(3 * section.runs * len(tasks) * section.votes, "episode") as progress:
        for policy, actor in actors(stage):
            wanted = [
                request
                for run in range(section.runs)
                for request in requests(tasks, section.votes, stage.params.seed, policy, f"run-{run}")
            ]
            step = read_kept(KEPT).step if policy == TRAINED else 0
            with collector_of(stage.params, actor) as collector:
                trajectories += collector.collect(wanted, policy_version=step, on_episode=progress.advance)
    return trajectories


def actors(stage: Stage) -> Iterator[tuple[str, Agent]]:
    """The policies, one at a time, so that only one model is in memory."""
    from skillpress.assembly import engine_of, evaluation_sampling, language_agent, random_explorer
    from skillpress.policy import load_policy
    from tasks.data import BASE_POLICY, POLICY

    params = stage.params
    yield EXPLORER, random_explorer(params)
    for name, folder in ((START, BASE_POLICY), (TRAINED, POLICY)):
        policy = load_policy(folder, params.policy.dtype)
        yield name, language_agent(params, policy, engine_of(params, policy), evaluation_sampling(params))


def headline(summary: EvaluationSummary) -> dict[str, float]:
    """The few figures by which experiments are compared at a glance."""
    figures = {
        "pass_at_1": summary.pass_at_1.mean,
        "pass_at_1_low": summary.pass_at_1.low,
        "pass_at_1_high": summary.pass_at_1.high,
        f"sc_at_{summary.votes}": summary.self_consistency.mean,
        "budget_area": summary.budget.area,
    }
    figures |= {f"within_{budget}_steps": share for budget, share in summary.budget.points.items()}
    return figures | {
        figure.key: figure.value for figure in summary.behavior if figure.table and figure.value is not None
    }


def budget_rows(summaries: Mapping[str, EvaluationSummary]) -> Iterator[dict[str, float]]:
    """One row per step budget, one column per policy: the share won within so many steps."""
    for step, shares in enumerate(zip(*(s.budget.success for s in summaries.values()), strict=True), 1):
        yield {"steps": float(step), **dict(zip(summaries, shares, strict=True))}


if __name__ == "__main__":
    leave(run_stage("evaluate_policy", main))
