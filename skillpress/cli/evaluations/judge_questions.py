"""``skillpress judge-questions``: let a model rate the objectivity and stability of training questions.

    skillpress judge-questions --model Qwen/Qwen2.5-7B-Instruct --output verdicts.parquet
    skillpress judge-questions --model http://127.0.0.1:8000/v1 --params params/notebook_qa.yaml --output ...

The model rates the questions that the rules keep, at temperature 0, through the engine that the parameters
name or a chat-completions server: 1, 0 or -1 each. Set environment.objectivity to the file, and only
questions with two ratings of 1 are kept. Ratings from before an interruption are kept next to the file, and
the same command continues from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from skillpress.cli.evaluations.options import add_judge
from skillpress.cli.evaluations.parameters import evaluation_params
from skillpress.core.arguments import CommandParser, output_file
from skillpress.core.errors import ParamsError
from skillpress.core.interface import Ask
from skillpress.core.tables import write_table
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.ratings import RATING_COLUMNS, undecided
from skillpress.environments.notebook_qa.tasks import questions_to_judge
from skillpress.evaluation.judge.objectivity import PROMPT, rate_questions


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "--output", required=True, type=output_file, metavar="FILE", help="the Parquet file of ratings"
    )
    add_judge(parser)
    chosen = parser.parse_args(arguments)
    params = evaluation_params("notebook_qa", chosen.model, chosen.params, assignments=chosen.set)
    from skillpress.cli.evaluations.judging import judged  # imports torch

    section = params.environment
    if not isinstance(section, NotebookQaParameters):
        raise ParamsError(f"environment.name: is {section.name!r}; only notebook_qa has questions to judge")
    questions = partial(questions_to_judge, section)
    with judged(questions, _rate, PROMPT, chosen, params=params, output=chosen.output) as (ratings, told):
        write_table(chosen.output, ratings, "ratings")
    unread = ratings.filter(undecided()).height
    kept = ratings.filter(stability=1, objectivity=1).height
    print(
        f"{chosen.output}: {kept} rated 1 for both, {ratings.height - kept - unread} below, {unread} without "
        "readable ratings (regular expressions will decide); name it in environment.objectivity"
    )
    if told:
        print(f"answers: {told}")
    return 0


def _rate(questions: pl.DataFrame, ask: Ask) -> pl.DataFrame:
    """``dataset``, ``id`` and both ratings of each question."""
    found = rate_questions(questions["question"].to_list(), questions["answers"].to_list(), ask)
    return pl.DataFrame(
        [(*place, each.stability, each.objectivity)
         for place, each in zip(questions.select("dataset", "id").iter_rows(), found, strict=True)],
        schema=RATING_COLUMNS,
        orient="row",
    )  # fmt: skip
