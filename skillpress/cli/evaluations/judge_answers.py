"""``skillpress judge-answers``: let a model grade the answers of finished runs, as SimpleQA does.

    skillpress judge-answers . workspaces/l0-seed1 --model Qwen/Qwen2.5-32B-Instruct
    skillpress judge-answers RUN --model http://127.0.0.1:8000/v1 --params params/notebook_qa.yaml

A run is a folder in which an experiment with questions was reproduced. The model grades every answer that an
evaluated policy submitted, at temperature 0: correct, incorrect or not attempted. The grades go to
results/grades.parquet of each run, and ``skillpress tables`` shows them as LJ. Equal answers to a question
are graded once. Grades from before an interruption are kept, and the same command continues from there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from skillpress.cli.evaluations.options import add_judge
from skillpress.cli.evaluations.parameters import evaluation_params
from skillpress.core.arguments import CommandParser
from skillpress.core.errors import ParamsError, StorageError
from skillpress.core.interface import Ask
from skillpress.core.names import looking
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.evaluation.judge.simpleqa import PROMPT, Answered, JudgeCounts, count_grades, grade_answers
from skillpress.evaluation.paper.method_episodes import write_grades
from skillpress.evaluation.paper.notebook_qa.scores import submitted
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, GRADES, POLICIES
from skillpress.pipeline.finished.run import FinishedRun, read_unchanged

_LOG = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a finished run")
    add_judge(parser)
    chosen = parser.parse_args(arguments)
    params = evaluation_params("notebook_qa", chosen.model, chosen.params, assignments=chosen.set)
    from skillpress.cli.evaluations.judging import judged  # imports torch

    # The model is ours, the runs may not be.
    with looking(lambda line: _LOG.warning("judge-answers: %s", line)):
        runs = list(map(read_unchanged, chosen.runs))
    for run in runs:
        if not isinstance(run.params.environment, NotebookQaParameters):
            raise ParamsError(f"{run.folder}: plays {run.environment}; only notebook_qa has answers to grade")
        answers, output = answers_of(run), run.folder / GRADES
        asked = answers.select("question", "answers", "answer").unique(
            ["question", "answer"], maintain_order=True
        )
        with judged(asked.clone, _grade, PROMPT, chosen, params=params, output=output) as (found, told):
            grades = answers.join(found, on=["question", "answer"], nulls_equal=True, maintain_order="left")
            write_grades(output, grades)
        for (policy,), those in grades.group_by("policy", maintain_order=True):
            print(f"{run.folder}: {policy}: {_told(count_grades(those['grade'].to_list()))}")
        if told:
            print(f"{run.folder}: answers: {told}")
    return 0


def answers_of(run: FinishedRun) -> pl.DataFrame:
    """Every episode of a run's evaluation: its key with ``policy``, ``answer`` (null if nothing was
    submitted), and its task's ``question`` and ``answers`` (aliases).

    Raises:
        StorageError: the evaluation does not record answers.
    """
    parts = [
        submitted(run.steps(policy), run.tasks).with_columns(policy=pl.lit(policy)) for policy in POLICIES
    ]
    found = pl.concat(parts)
    if not found["recorded"].all():
        raise StorageError(
            f"{run.folder / EVALUATION_ROLLOUTS}: has no recorded answers; run its evaluate_policy stage "
            "again"
        )
    return found


def _told(counts: JudgeCounts) -> str:
    return (
        f"{counts.correct} correct, {counts.incorrect} incorrect, {counts.not_attempted} not attempted, "
        f"{counts.unreadable} without a readable grade; judge's score {counts.score:.1%}, "
        f"F {counts.f_score:.1%}"
    )


def _grade(answers: pl.DataFrame, ask: Ask) -> pl.DataFrame:
    """``question``, ``answer`` and ``grade`` of each answer."""
    answered = [Answered(*row) for row in answers.select("question", "answers", "answer").iter_rows()]
    grades = pl.Series(grade_answers(answered, ask), dtype=pl.String)
    return answers.select("question", "answer", grade=grades)
