"""Questions as tasks: chosen by rules, separated from the evaluation questions, and spread over kinds.

A question's own ``split`` says what it may be used for. The ``train`` questions of the data sets in
``train_on`` are training tasks, and their ``dev`` questions are validation tasks. The ``test`` questions of
the data sets in ``test_on`` are test tasks (``dev`` ones too, if the data set is not used for training).
Training questions must pass the rules of ``questions.py``; these also exclude every question that occurs, in
any data set, in a split other than ``train``. Evaluation questions are not filtered, except that repetitions
are left out.

If fewer are requested than there are, they are drawn by seed, and each stratum keeps its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import polars as pl

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.parameters import QUESTIONS, Difficulty, QuestionParameters
from skillpress.environments.notebook_qa.questions import judged, question_key, read_columns
from skillpress.environments.notebook_qa.ratings import by_ratings
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "notebook_qa"
OTHER_HOPS, OTHER_DIFFICULTY, OUT_OF_REACH = "other_hops", "other_difficulty", "out_of_reach"
REPEATED = "repeated"
"""Additional reasons to those of ``questions.py``: for the first three see ``QuestionParameters``; the last
one is for repeated evaluation questions."""
COLUMNS = {
    "id": pl.String(),
    "dataset": pl.String(),
    "split": pl.String(),
    "question": pl.String(),
    "answers": pl.List(pl.String()),
    "supporting_titles": pl.List(pl.String()),
    "kind": pl.String(),
}
"""The columns of ``questions.parquet``."""
HOPS_OF_DATASET: Final = {"bamboogle": 2, "nq_open": 1, "triviaqa": 1, "simpleqa": 1}
"""Number of hops in data sets whose questions do not state it, derived from how the questions were
written."""


def make_tasks(parameters: QuestionParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        UserError: the data are missing.
        TaskError: a column is missing, or more tasks are requested than there are.
    """
    chosen = _chosen(parameters)
    for split, count in (("train", sizes.train), ("validation", sizes.validation), ("test", sizes.test)):
        tasks = [_task(row, split, parameters.name) for row in chosen[split].iter_rows(named=True)]
        if len(tasks) < count:
            key = "test_on" if split == "test" else "train_on"
            raise TaskError(
                f"tasks.{split}: is {count}; only {len(tasks)} questions are left of those that "
                f"environment.{key} "
                f"names, after the rules that apply to them: {dict(dropped(parameters))}"
            )
        yield from spread(tasks, count, seed)


def dropped(parameters: QuestionParameters) -> Mapping[str, Mapping[str, int]]:
    """Maps data set to reason to the number of questions left out for it, including ``kept``."""
    counted = _chosen(parameters)["dropped"].group_by("dataset", "reason").len().sort("dataset", "reason")
    found: dict[str, dict[str, int]] = {}
    for dataset, reason, count in counted.iter_rows():
        found.setdefault(dataset, {})[reason or "kept"] = count
    return found


def questions_to_judge(parameters: QuestionParameters) -> pl.DataFrame:
    """The training questions (``dataset``, ``id``, ``question``, ``answers``) that a model may rate: the
    questions kept by the rules that ratings do not replace, whether or not short actions can answer them.
    """
    training = _training(_rows(parameters), parameters, rated=True)
    return training.filter(pl.col("reason").is_null()).select("dataset", "id", "question", "answers")


def spread(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """``count`` of the tasks, drawn by seed, in proportion over strata, and in a drawn order."""
    ordered = sorted(tasks, key=lambda task: (task.stratum, derive(seed, "question", task.task_id)))
    offset = derive(seed, "question offset") % max(1, len(ordered))
    drawn = [ordered[(offset + index * len(ordered) // count) % len(ordered)] for index in range(count)]
    return sorted(drawn, key=lambda task: derive(seed, "question order", task.task_id))


def check_tasks(tasks: Sequence[Task], environment: str = ENVIRONMENT) -> None:
    """Refuse a task set that does not consist of questions, or repeats one."""
    keys = pl.DataFrame({"question": [str(task.spec.get("question", "")) for task in tasks]})
    by_task = dict(
        zip((task.task_id for task in tasks), keys.select(question_key()).to_series(), strict=True)
    )
    refuse_repetitions(tasks, environment, "question", lambda task: by_task[task.task_id])


def _chosen(parameters: QuestionParameters) -> Mapping[str, pl.DataFrame]:
    return _chosen_once(type(parameters), parameters.model_dump_json())


@lru_cache(1)
def _chosen_once(kind: type[QuestionParameters], section: str) -> Mapping[str, pl.DataFrame]:
    """Maps each split to its questions, and ``dropped`` to all questions considered, each with the reason or
    null."""
    parameters = kind.model_validate_json(section)
    rows = _rows(parameters)
    trains, is_dev = pl.col("dataset").is_in(parameters.train_on), pl.col("split") == "dev"
    tests = pl.col("dataset").is_in(parameters.test_on) & ((pl.col("split") == "test") | (is_dev & ~trains))
    test = _repetitions(rows.filter(tests), rows.clear())
    validation = _repetitions(rows.filter(trains, is_dev), test)
    train = _training(rows, parameters, rated=bool(parameters.objectivity))
    if parameters.objectivity:
        train = by_ratings(train, parameters.objectivity)
    splits = {
        "train": _in_reach(train, parameters),
        "validation": _of_hops(validation, parameters),
        "test": _of_hops(test, parameters),
    }
    kept = {name: frame.filter(pl.col("reason").is_null()) for name, frame in splits.items()}
    return {**kept, "dropped": pl.concat(splits.values()).select("dataset", "reason")}


def _rows(parameters: QuestionParameters) -> pl.DataFrame:
    file = parameters.folder / QUESTIONS
    return read_columns(file, COLUMNS, str(file)).with_columns(hops())


def _training(rows: pl.DataFrame, parameters: QuestionParameters, rated: bool) -> pl.DataFrame:
    """The training questions, each with the reason by the rules or null; see ``questions.judged``."""
    is_train = pl.col("split") == "train"
    questions = rows.filter(pl.col("dataset").is_in(parameters.train_on), is_train)
    found = judged(questions, rows.filter(~is_train), parameters.max_answer_words, rated)
    other = pl.when(~is_of(parameters.difficulty)).then(pl.lit(OTHER_DIFFICULTY))
    return _of_hops(found, parameters).with_columns(reason=pl.coalesce("reason", other))


def _repetitions(questions: pl.DataFrame, elsewhere: pl.DataFrame) -> pl.DataFrame:
    """Set ``reason`` for each question that is asked elsewhere or occurs earlier."""
    taken = elsewhere.select(key=question_key())["key"].implode()
    key = question_key()
    repeated = key.is_in(taken) | ~key.is_first_distinct()
    return questions.with_columns(reason=pl.when(repeated).then(pl.lit(REPEATED)))


def _of_hops(questions: pl.DataFrame, parameters: QuestionParameters) -> pl.DataFrame:
    if not parameters.hops:
        return questions
    other = ~pl.col("hops").is_in(parameters.hops).fill_null(False)
    return questions.with_columns(reason=pl.coalesce("reason", pl.when(other).then(pl.lit(OTHER_HOPS))))


def _in_reach(questions: pl.DataFrame, parameters: QuestionParameters) -> pl.DataFrame:
    """Drop the questions that short actions cannot answer, if the section asks for it."""
    if not parameters.reachable:
        return questions
    demonstrator = parameters.make_oracle()
    reasons = [
        OUT_OF_REACH
        if row["reason"] is None and demonstrator.way(_task(row, "train", parameters.name)) is None
        else row["reason"]
        for row in questions.iter_rows(named=True)
    ]
    return questions.with_columns(pl.Series("reason", reasons, pl.String))


def _task(row: Mapping[str, object], split: str, environment: str) -> Task:
    """A question's task. Its stratum consists of the data set and the hops."""
    many = row["hops"]
    hops_in_words = f"{many} hop{'' if many == 1 else 's'}" if many else "unknown hops"
    spec = {name: row[name] for name in ("question", "answers", "dataset", "supporting_titles")}
    return Task(
        task_id=f"{row['dataset']}/{row['id']}",
        environment=environment,
        seed=0,
        spec=spec,
        split=split,
        stratum=f"{row['dataset']}/{hops_in_words}",
    )


def is_of(chosen: Difficulty) -> pl.Expr:
    """Whether a set contains a question, by its ``hops``: an easy question needs one fact, a hard one joins
    several. A question whose hops are unknown is in neither set. L0 has two such sets (section 4.5); neither
    the paper nor the released code says how they were made. Its own notion of difficulty (section 4.3) is how
    often a policy answers a question, by which ``tasks.keep`` chooses."""
    if chosen == "all":
        return pl.lit(True)
    return (pl.col("hops") == 1 if chosen == "easy" else pl.col("hops") > 1).fill_null(False)


def hops() -> pl.Expr:
    """Number of facts to join, from columns ``dataset``, ``kind`` and ``supporting_titles``; null if it is
    unknown.

    MuSiQue's kind states it (``3hop1``); elsewhere every gold title is a fact; otherwise
    :data:`HOPS_OF_DATASET`.
    """
    titles = pl.col("supporting_titles").list.len()
    return pl.coalesce(
        pl.col("kind").str.extract(r"^(\d)hop").cast(pl.Int64),
        pl.when(titles > 0).then(titles.cast(pl.Int64)),
        pl.col("dataset").replace_strict(HOPS_OF_DATASET, default=None, return_dtype=pl.Int64),
    ).alias("hops")
