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
    from skillpress.rollout import Journal
    from skillpress.trajectory import Task, Trajectory

EXPLORER, START, TRAINED = "explorer", "start", "trained"
POLICIES = EXPLORER, START, TRAINED
"""Those of every table."""
PAIRS = ((EXPLORER, START), (START, TRAINED))


def main(stage: Stage) -> None:
    """Write the rollouts, results/evaluation.json, the headline figures and the budget curves."""
    import polars as pl

    from skillpress.assembly import environment_of
    from skillpress.evaluation import compare, evaluate
    from skillpress.evaluation.weights import read_kept
    from skillpress.rollout import Journal
    from skillpress.seeds import derive
    from skillpress.storage import write_json
    from skillpress.trajectory import scan_rollouts, write_rollouts
    from tasks.data import (
        BASE_POLICY,
        EVALUATION_ROLLOUTS,
        KEPT,
        POLICY,
        RESULTS,
        load_tasks,
        split_file,
        unfinished,
        write_curve,
    )  # fmt: skip
    from tasks.registry import register_policy

    params, section = stage.params, stage.params.evaluation
    longest = params.environment.max_steps
    bundle = environment_of(params)
    tasks = load_tasks(bundle)["test"]
    work = unfinished(stage, split_file("test"), BASE_POLICY, POLICY, KEPT)
    with Journal(work) as journal:
        write_rollouts(EVALUATION_ROLLOUTS, play(stage, tasks, journal))
    every = scan_rollouts(EVALUATION_ROLLOUTS)
    rollouts = {policy: every.filter(pl.col("group_id").str.starts_with(f"{policy}/")) for policy in POLICIES}
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
    work.forget()


def play(stage: Stage, tasks: Sequence[Task], journal: Journal) -> list[Trajectory]:
    """All episodes of all policies, those that an interrupted process played included."""
    from skillpress.assembly import collector_of
    from skillpress.evaluation.weights import read_kept
    from skillpress.rollout import requests
    from tasks.data import KEPT

    section = stage.params.evaluation
    trajectories: list[Trajectory] = []
    with stage.progress(len(POLICIES) * section.runs * len(tasks) * section.votes, "episode") as progress:
        for policy in POLICIES:
            wanted = [
                request
                for run in range(section.runs)
                for request in requests(tasks, section.votes, stage.params.seed, policy, f"run-{run}")
            ]
            step = read_kept(KEPT).step if policy == TRAINED else 0
            missing = len(journal.missing(wanted))
            progress(progress.count + len(wanted) - missing)
            if missing:
                with collector_of(stage.params, actor(stage, policy)) as collector:
                    journal.play(collector, wanted, step, progress.advance)
            trajectories += journal.trajectories(wanted)
    return trajectories


def actor(stage: Stage, policy: str) -> Agent:
    """Who acts under a policy's name; loaded when it is its turn, so that one model is in memory."""
    from skillpress.assembly import engine_of, evaluation_sampling, language_agent, random_explorer
    from skillpress.policy import load_policy
    from tasks.data import BASE_POLICY, POLICY

    params = stage.params
    if policy == EXPLORER:
        return random_explorer(params)
    loaded = load_policy(BASE_POLICY if policy == START else POLICY, params.policy.dtype)
    return language_agent(params, loaded, engine_of(params, loaded), evaluation_sampling(params))


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
