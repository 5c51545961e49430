"""A finished run, read from the folder in which an experiment was reproduced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.errors import StorageError, UserError
from skillpress.core.moved import with_present_keys
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import read_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.evaluation.paper.method_episodes import GRADES as GRADED
from skillpress.evaluation.paper.method_episodes import read_grades
from skillpress.evaluation.paper.methods import (
    ABSENT,
    VANILLA,
    Method,
    decides,
    flatten,
    in_words,
    method,
    methods,
)
from skillpress.evaluation.statistics.episodes import (
    EvaluationSteps,
    check_complete,
    episode_table,
    evaluation_steps,
)
from skillpress.experiment.params import Params, load_params, read_yaml
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
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint

BASELINES = {EXPLORER: "explorer", START: VANILLA}
"""The methods of policies without training in the paper's tables."""

COMMON = ("environment", "tasks", "policy", "imitation", "evaluation")
"""Sections of params.yaml in which the runs of one environment must agree."""
TRAINING_ALONE = "tasks.keep"
"""Keys inside these sections that affect only training."""


def common(params: Params) -> dict[str, Any]:
    """The values, by dotted key, in which the runs of one environment must agree."""
    sections = {name: getattr(params, name).model_dump(mode="json") for name in COMMON}
    return {key: value for key, value in flatten(sections) if not f"{key}.".startswith(f"{TRAINING_ALONE}.")}


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
    def method(self) -> Method:
        """The name of the method outside of tables; for tables see :func:`by_environment`."""
        return method(self.params)

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


DECIDING = ("prepare_tasks", "prepare_policy", "train_policy", "evaluate_policy")
"""The stages whose results are shown."""


def read_unchanged(folder: Path) -> FinishedRun:
    """The run in a folder, whose params.yaml is the one that its results were made with.

    Raises:
        RunsError: params.yaml was changed since; dvc.lock has the parameters of every stage.
        UserError: a file is missing or wrong.
    """
    run = read_run(folder)
    for stage, key, made, now in _changed(folder):
        raise RunsError(
            f"{folder / 'params.yaml'}: {key} is {in_words(now)}, but {stage} ran with {in_words(made)} "
            "(dvc.lock); restore that value, or let `skillpress run` make the results again"
        )
    return run


def _changed(folder: Path) -> Iterator[tuple[str, str, Any, Any]]:
    """Stage, key, the value that it ran with by dvc.lock, and that of params.yaml, where the two differ."""
    lock = folder / "dvc.lock"
    if not lock.is_file():
        return
    values, stages = read_yaml(folder / "params.yaml"), read_yaml(lock).get("stages")
    for stage in DECIDING:
        read = _inside(stages, stage, "params", "params.yaml")
        if not isinstance(read, Mapping):  # this stage has not run, or its entry is damaged
            continue
        read = with_present_keys(read, str(lock))
        made = dict(flatten(read))
        now = dict(flatten({key: _inside(values, *key.split(".")) for key in read}))
        for key in dict.fromkeys((*made, *now)):
            one, other = made.get(key, ABSENT), now.get(key, ABSENT)
            if one != other and (key == "seed" or decides(key)):
                yield stage, key, one, other


def _inside(values: Any, *keys: str) -> Any:
    """The value under nested keys; ``ABSENT`` if there is none."""
    for key in keys:
        values = values.get(key, ABSENT) if isinstance(values, Mapping) else ABSENT
    return values


Named = Mapping[str, Sequence[tuple[FinishedRun, Method]]]
"""The runs of each environment, each with its name among them."""


def by_environment(runs: Sequence[FinishedRun]) -> Named:
    """The runs of a table, checked: there is one checkpoint rule, each method has each seed once, and runs of
    an environment agree in what they share.

    Raises:
        RunsError: one of these is not the case.
    """
    if len(rules := {run.checkpoint.rule for run in runs}) > 1:
        raise RunsError(f"trained policies were chosen by different rules: {', '.join(sorted(rules))}")
    of_environment: dict[str, list[FinishedRun]] = {}
    for run in runs:
        of_environment.setdefault(run.environment, []).append(run)
    return {name: _named(group) for name, group in of_environment.items()}


def _named(runs: Sequence[FinishedRun]) -> list[tuple[FinishedRun, Method]]:
    seen: dict[tuple[str, int], Path] = {}
    found = list(zip(runs, methods([run.params for run in runs]), strict=True))
    for run, called in found:
        for difference in differences(runs[0], run):
            raise RunsError(f"{runs[0].folder} and {run.folder} cannot be in one table: {difference}")
        key = (called.name, run.seed)
        if key in seen:
            raise RunsError(
                f"{run.folder} and {seen[key]} are both runs of {called.label}, seed {run.seed}, on "
                f"{run.environment}; name one of them"
            )
        seen[key] = run.folder
    return found


def differences(one: FinishedRun, other: FinishedRun) -> Iterator[str]:
    """The differences that keep two runs of an environment out of one table."""
    mine, theirs = common(one.params), common(other.params)
    for key in dict.fromkeys((*mine, *theirs)):
        first, second = mine.get(key, ABSENT), theirs.get(key, ABSENT)
        if first != second:
            yield f"{key} is {first!r} and {second!r}"


TABLES = ("policies", "comparisons")
"""Two keys: one has an entry for each policy, the other for each pair of policies."""


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
