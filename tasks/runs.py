"""A finished run as the paper's tables read it, and which runs can stand in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from skillpress.evaluation.episodes import check_complete, episode_table, evaluation_steps
from skillpress.evaluation.weights import Kept
from skillpress.params import Params, load_params
from skillpress.trajectory import Task, read_tasks, scan_rollouts
from tasks.data import EVALUATION_ROLLOUTS, RESULTS, split_file
from tasks.results import TRAINED, checkpoint

VANILLA = "vanilla"
BASELINES = {"explorer": "explorer", "start": VANILLA}
"""Policies that the evaluation plays beside the trained one, to their methods in the paper's tables."""

COMMON = ("environment", "tasks", "policy", "imitation", "evaluation")
"""Sections of params.yaml in which the runs of one environment must agree."""


class RunsError(ValueError):
    """These runs cannot stand in one table; the message says which and why."""


@dataclass(frozen=True)
class Run:
    """One finished experiment."""

    folder: Path
    params: Params
    checkpoint: Kept
    """Which weights its trained policy has, and by which rule."""
    tasks: tuple[Task, ...]
    """What it was evaluated on."""

    @property
    def method(self) -> str:
        """The method as ``skillpress.evaluation.paper.METHODS`` names it.

        Raises:
            RunsError: its parameters are those of a control that the paper has no column for.
        """
        params = self.params
        if params.training.steps == 0:
            return VANILLA
        if params.reward.shaping == "none":
            return "grpo"
        if params.reward.shaping == "round_length":
            return "round_length"
        for key, papers in (("search", "greedy"), ("closure", "none")):
            if (value := getattr(params.skills, key)) != papers:
                raise RunsError(
                    f"{self.folder}: skills.{key} is {value!r}; the paper's tables have a place for "
                    f"{papers!r} alone"
                )
        return "segcost" if params.skills.buffer else "segcost_no_buffer"

    @property
    def environment(self) -> str:
        """The environment's name."""
        return self.params.environment.name

    def steps(self, policy: str) -> pl.DataFrame:
        """One policy's evaluation, runs named ``<seed>/<run>``.

        Raises:
            EvaluationError: it does not hold every task the same number of times.
            RunsError: it was not played by the weights that training left.
        """
        section = self.params.evaluation
        name = pl.col("group_id").str.strip_prefix(f"{policy}/")
        steps = evaluation_steps(
            scan_rollouts(self.folder / EVALUATION_ROLLOUTS)
            .filter(pl.col("group_id").str.starts_with(f"{policy}/"))
            .with_columns(group_id=pl.format(f"{self.params.seed}/{{}}", name))
        )
        check_complete(
            episode_table(steps), [task.task_id for task in self.tasks], section.runs, section.votes
        )
        step = self.checkpoint.step if policy == TRAINED else 0
        if (played := steps["policy_version"].unique().to_list()) != [step]:
            raise RunsError(
                f"{self.folder}: {policy} was evaluated at training step {played}, its weights are of "
                f"{step}; run its evaluate_policy stage again"
            )
        return steps


def read_run(folder: Path) -> Run:
    """The run of a folder.

    Raises:
        ParamsError: its params.yaml is missing or wrong.
        StorageError: its tasks or results are missing or damaged.
    """
    return Run(
        folder,
        load_params(folder / "params.yaml"),
        checkpoint(folder / RESULTS),
        tuple(read_tasks(folder / split_file("test"))),
    )


def check_runs(runs: Sequence[Run]) -> None:
    """One checkpoint rule; each method has each seed once; runs of an environment agree in what they
    share.

    Raises:
        RunsError: they do not.
    """
    if len(rules := {run.checkpoint.rule for run in runs}) > 1:
        raise RunsError(f"trained policies were chosen by different rules: {', '.join(sorted(rules))}")
    seen: dict[tuple[str, str, int], Path] = {}
    first: dict[str, Run] = {}
    for run in runs:
        key = (run.environment, run.method, run.params.seed)
        if key in seen:
            raise RunsError(
                f"{run.folder} and {seen[key]} are both {run.method}, seed {run.params.seed}, on "
                f"{run.environment}; name one of them"
            )
        seen[key] = run.folder
        reference = first.setdefault(run.environment, run)
        for difference in differences(reference, run):
            raise RunsError(f"{reference.folder} and {run.folder} cannot stand in one table: {difference}")


def differences(one: Run, other: Run) -> Iterator[str]:
    """What keeps two runs of an environment out of one table."""
    for section in COMMON:
        mine, theirs = (getattr(run.params, section).model_dump() for run in (one, other))
        for key, value in mine.items():
            if theirs.get(key) != value:
                yield f"{section}.{key} is {value!r} and {theirs.get(key)!r}"
