"""A finished run, read from the folder in which an experiment was reproduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.errors import StorageError, UserError
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import read_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.experiment.params import Params, load_params
from skillpress.learn.training.keeping.selected_checkpoint import SelectedCheckpoint
from skillpress.measure.evaluation.episodes import (
    EvaluationSteps,
    check_complete,
    episode_table,
    evaluation_steps,
)
from skillpress.measure.paper.method_episodes import GRADES as GRADED
from skillpress.measure.paper.method_episodes import read_grades
from skillpress.pipeline.files import (
    EVALUATION_ROLLOUTS,
    EXPLORER,
    GRADES,
    HISTORY,
    LIBRARY,
    RESULTS,
    START,
    TRAINED,
    split_file,
)
from skillpress.skills.history import read_history
from skillpress.skills.library.library import SkillLibrary, read_library

VANILLA = "vanilla"
BASELINES = {EXPLORER: "explorer", START: VANILLA}
"""Policies without training, to their methods in the paper's tables."""

COMMON = ("environment", "tasks", "policy", "imitation", "evaluation")
"""Sections of params.yaml in which the runs of one environment must agree."""


class RunsError(UserError):
    """These runs do not fit in one table; the message says which ones and why."""


@dataclass(frozen=True)
class FinishedRun:
    """One finished experiment."""

    folder: Path
    params: Params
    checkpoint: SelectedCheckpoint
    """The training step whose weights its trained policy has, and the rule that chose it."""
    tasks: tuple[Task, ...]
    """The tasks of its evaluation."""
    label: str = ""
    """A comparison's name for its method, such as the name of its overlay; empty if it has none."""

    @property
    def seed(self) -> int:
        """The experiment's seed."""
        return self.params.seed

    @property
    def results(self) -> Path:
        """The folder of its figures."""
        return self.folder / RESULTS

    @property
    def method(self) -> str:
        """The name in ``measure.paper.layout.METHODS``; ``RunsError`` if the paper has no column."""
        params, skills, shaping = self.params, self.params.skills, self.params.reward.shaping
        if params.training.steps == 0:
            return VANILLA
        self._only("algorithm.name", params.algorithm.name, "grpo")
        if skills.library is not None:
            raise RunsError(
                f"{self.folder}: skills.library is set; the paper's tables have no place for it, and Table "
                "11 is measured in the run's own report"
            )
        self._only("reward.shaping", shaping, "none", "round_length", "segcost")
        self._only("reward.centred", str(params.reward.centred).lower(), "false")
        if shaping != "segcost":
            return "grpo" if shaping == "none" else shaping
        self._only("skills.search", skills.search, "greedy")
        self._only("skills.closure", skills.closure, "none")
        self._only("skills.corpus", skills.corpus, "algorithm_1", "buffer_and_batch", "batch_accepts")
        self._only("skills.dictionaries", skills.dictionaries, "shared")
        return "segcost" if params.skills.buffer else "segcost_no_buffer"

    def _only(self, key: str, value: str, *papers: str) -> None:
        *others, last = map(repr, papers)
        if value not in papers:
            raise RunsError(
                f"{self.folder}: {key} is {value!r}; the paper's tables have a place for "
                f"{' and '.join([', '.join(others), last] if others else [last])} alone"
            )

    @property
    def last_dictionary(self) -> dict[tuple[str, ...], int] | None:
        """Phrases to uses, at the last step with a success; None without; ``StorageError`` if damaged."""
        path = self.folder / HISTORY
        history = read_history(path) if path.exists() else {}
        return history[max(history)] if history else None

    @property
    def library(self) -> SkillLibrary:
        """The skill library that training wrote, empty without one; ``StorageError`` if damaged."""
        path = self.folder / LIBRARY
        return read_library(path) if path.exists() else SkillLibrary()

    def grades(self, policy: str) -> pl.DataFrame:
        """A judge's grades of one policy's answers, marked with the training seed; empty if none were
        graded (``skillpress judge-answers``).

        Raises:
            StorageError: the file is damaged.
        """
        path = self.folder / GRADES
        return read_grades(path, policy, self.seed) if path.exists() else pl.DataFrame(schema=GRADED)

    @property
    def environment(self) -> str:
        """The environment's name in params.yaml."""
        return self.params.environment.name

    @property
    def played(self) -> str:
        """The environment's title on pages."""
        return self.params.environment.title

    def unchecked_steps(self, policy: str) -> EvaluationSteps:
        """One policy's evaluation as on the disk, marked with the seed; or ``StorageError``."""
        every = evaluation_steps(scan_rollouts(self.folder / EVALUATION_ROLLOUTS), self.seed)
        return every.filter(pl.col("policy") == policy)

    def steps(self, policy: str) -> EvaluationSteps:
        """One policy's evaluation; ``EvaluationError`` if incomplete, ``RunsError`` if by other weights."""
        section = self.params.evaluation
        steps = self.unchecked_steps(policy)
        check_complete(
            episode_table(steps), [task.task_id for task in self.tasks], section.runs, section.votes
        )
        step = self.checkpoint.step if policy == TRAINED else 0
        if (played := sorted(steps.counts(pl.col("policy_version")))) != [step]:
            raise RunsError(
                f"{self.folder}: {policy} was evaluated at training step {played}, its weights are of "
                f"{step}; run its evaluate_policy stage again"
            )
        return steps


def read_run(folder: Path, label: str = "") -> FinishedRun:
    """The run in a folder; ``ParamsError`` or ``StorageError`` if a file of it is missing or wrong."""
    return FinishedRun(
        folder=folder,
        params=load_params(folder / "params.yaml"),
        checkpoint=checkpoint(folder / RESULTS),
        tasks=tuple(read_tasks(folder / split_file("test"))),
        label=label,
    )


def check_runs(runs: Sequence[FinishedRun]) -> None:
    """Check that there is one checkpoint rule, that each method has each seed once, and that runs of an
    environment agree in what they share.

    Raises:
        RunsError: one of these is not the case.
    """
    if len(rules := {run.checkpoint.rule for run in runs}) > 1:
        raise RunsError(f"trained policies were chosen by different rules: {', '.join(sorted(rules))}")
    seen: dict[tuple[str, str, int], Path] = {}
    first: dict[str, FinishedRun] = {}
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


def differences(one: FinishedRun, other: FinishedRun) -> Iterator[str]:
    """The differences that keep two runs of an environment out of one table."""
    for section in COMMON:
        mine, theirs = (getattr(run.params, section).model_dump() for run in (one, other))
        for key, value in mine.items():
            if theirs.get(key) != value:
                yield f"{section}.{key} is {value!r} and {theirs.get(key)!r}"


TABLES = ("policies", "comparisons")
"""The keys with an entry for each policy, and for each pair of policies."""


def read_evaluation(results: Path) -> dict[str, Any]:
    """The content of evaluation.json, or ``StorageError`` if this version did not write it."""
    values = read_json(results / "evaluation.json")
    parts = values if isinstance(values, dict) else {}
    if "checkpoint" not in parts or not all(isinstance(parts.get(part), dict) for part in TABLES):
        raise StorageError(
            f"{results / 'evaluation.json'}: not what the stage evaluate_policy writes here; run it again"
        )
    return parts


def checkpoint(results: Path) -> SelectedCheckpoint:
    """Which training step's weights the trained policy has, and by which rule; or ``StorageError``."""
    values = read_evaluation(results)["checkpoint"]
    try:
        return SelectedCheckpoint(**values)
    except TypeError as error:
        raise StorageError(
            f"{results / 'evaluation.json'}: checkpoint is {values!r}, this version writes rule and step; "
            "let the stage evaluate_policy run again"
        ) from error
