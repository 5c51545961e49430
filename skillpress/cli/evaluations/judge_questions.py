"""``skillpress judge-questions``: let a model say which training questions have one lasting answer.

    skillpress judge-questions --model Qwen/Qwen2.5-7B-Instruct --output verdicts.parquet
    skillpress judge-questions --model http://127.0.0.1:8000/v1 --params params/notebook_qa.yaml --output ...

The model judges the questions that the rules keep, at temperature 0, through the engine that the parameters
name or a chat-completions server. Set environment.objectivity to the file. Verdicts from before an
interruption are kept beside it, and the same command continues from there.
"""

from __future__ import annotations

from collections import Counter
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
from skillpress.environments.notebook_qa.tasks import questions_to_judge
from skillpress.evaluation.judge.objectivity import PROMPT, judge_objectivity


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "--output", required=True, type=output_file, metavar="FILE", help="the Parquet file of verdicts"
    )
    add_judge(parser)
    chosen = parser.parse_args(arguments)
    params = evaluation_params("notebook_qa", chosen.model, chosen.params, assignments=chosen.set)
    from skillpress.cli.evaluations.judging import judged  # imports torch

    section = params.environment
    if not isinstance(section, NotebookQaParameters):
        raise ParamsError(f"environment.name: is {section.name!r}; only questions of notebook_qa are judged")
    questions = partial(questions_to_judge, section)
    with judged(questions, _judge, PROMPT, chosen, params=params, output=chosen.output) as (verdicts, told):
        write_table(chosen.output, verdicts, "verdicts")
    said = Counter(verdicts["objective"].to_list())
    print(
        f"{chosen.output}: {said[True]} fit, {said[False]} unfit, {said[None]} without a readable verdict "
        f"(kept); name it in environment.objectivity"
    )
    if told:
        print(f"answers: {told}")
    return 0


def _judge(questions: pl.DataFrame, ask: Ask) -> pl.DataFrame:
    """``dataset``, ``id`` and ``objective`` of each question."""
    found = judge_objectivity(questions["question"].to_list(), questions["answers"].to_list(), ask)
    return questions.select("dataset", "id", objective=pl.Series(found, dtype=pl.Boolean))
