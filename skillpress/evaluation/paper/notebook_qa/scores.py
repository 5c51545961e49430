"""The figures of L0's Table 2, computed from answers: EM, F1 and a judge's score of each data set.

They are counted as in L0's released evaluation (``nb_agent_eval``), by one rule for all data sets: words
without articles and punctuation, the best alias, no special case for *yes* and *no*. (The environment's own
measure ``f1`` follows each data set's evaluation program.) An episode without an answer scores as a blank
answer. Answers whose grade could not be read are left out of the judge's score.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.answers import exact_match, f1, normalized, shared_words_f1
from skillpress.environments.notebook_qa.environment import WRONG_ANSWER
from skillpress.evaluation.paper.layout import L0_METHODS
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import BehaviorFigure, share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps

METRICS = {"em": "EM", "f1": "F1", "judge": "LJ"}
"""Metric to its heading in the paper."""

AVERAGE = "average"
"""The mean over the data sets of the same metric; every printed average is right to the last digit."""

_FILE = files("skillpress.evaluation.paper.notebook_qa") / "printed_l0.csv"
BACKBONE = "Qwen2.5-7B-Instruct"
BACKBONES = {
    "Qwen2.5-32B-Instruct": "Qwen2.5-32B-Instruct",
    "Qwen3-4B": "Qwen3-4B-Thinking",
    "Qwen3-4B-Thinking-2507": "Qwen3-4B-Thinking",
}
"""The end of ``policy.model`` to the backbone of Table 2; others are compared with :data:`BACKBONE`."""
PRINTED = {"vanilla": "L0-Scaffold", "l0": "L0-RL"}
"""L0's names of methods: the untrained policy in its loop, and the trained one."""
TABLE = "L0, Table 2"
MULTI_HOP = ("hotpotqa", "musique", "bamboogle")
"""The data sets of Table 1."""


def table_2(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """EM, F1 and LJ of each data set, and the mean of each over them where there are several.

    A figure has no value if an answer was not recorded (``rollouts/5`` and earlier) or, for LJ, not graded.
    """
    found = submitted(played.steps, played.tasks.values()).join(
        played.grades.with_columns(graded=pl.lit(True)),
        on=[*EPISODE_KEY, "answer"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    datasets = sorted(set(found["dataset"]))
    figures = [f for name in datasets for f in _figures(name, found.filter(pl.col("dataset") == name))]
    return (*figures, *(_mean(metric, figures) for metric in METRICS if len(datasets) > 1))


def table_1(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """EM of the multi-hop data sets, and its mean over them if all three were asked."""
    found = {figure.key: figure for figure in table_2(played)}
    em = [found[key] for name in MULTI_HOP if (key := f"em_{name}") in found]
    return (*em, _mean("em", em)) if len(em) == len(MULTI_HOP) else tuple(em)


def submitted(steps: EvaluationSteps, tasks: Iterable[Task]) -> pl.DataFrame:
    """One row per episode: its key, ``answer`` (null if nothing was submitted), whether the file records
    answers (``recorded``), and its task's ``question``, ``answers`` (aliases) and ``dataset``."""
    asked = pl.DataFrame(
        [{"task_id": task.task_id, **{key: task.spec[key] for key in _SPEC}} for task in tasks],
        schema={"task_id": pl.String, **_SPEC},
    )
    episodes = steps.per_episode(
        lambda rows: rows.group_by(EPISODE_KEY, maintain_order=True).agg(
            pl.col("outcome").first(), pl.col("answer").drop_nulls().last()
        )
    )
    silent = ~pl.col("outcome").is_in(["won", WRONG_ANSWER])
    rows = episodes.select(*EPISODE_KEY, "answer", recorded=silent | pl.col("answer").is_not_null())
    return rows.join(asked, on="task_id", maintain_order="left")


_SPEC: dict[str, Any] = {"question": pl.String, "answers": pl.List(pl.String), "dataset": pl.String}


def released_f1(predicted: str, gold: str) -> float:
    """F1 of L0's evaluation: of the words alone, and 0 if nothing is left of one side."""
    return shared_words_f1(normalized(predicted).split(), normalized(gold).split())


def _figures(dataset: str, answers: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """A data set's three figures; the interval of F1, which is not a share of episodes, is left out."""
    known = answers if answers["recorded"].all() else answers.clear()
    graded = known if known["graded"].fill_null(False).all() else known.clear()
    pairs = [(said or "", aliases) for said, aliases in known.select("answer", "answers").iter_rows()]
    exact = known.with_columns(em=pl.Series([exact_match(*pair) for pair in pairs], dtype=pl.Boolean))
    overlap = [f1(*pair, released_f1) for pair in pairs]
    read, correct, one = graded.drop_nulls("grade"), pl.col("grade") == "correct", pl.lit(1)
    return (
        share(f"em_{dataset}", f"{dataset} {METRICS['em']}", exact, pl.col("em"), whole=one, table=TABLE),
        BehaviorFigure(
            key=f"f1_{dataset}",
            label=f"{dataset} {METRICS['f1']}",
            value=sum(overlap) / len(overlap) if overlap else None,
            unit="share",
            episodes=len(overlap),
            table=TABLE,
        ),
        share(f"judge_{dataset}", f"{dataset} {METRICS['judge']}", read, correct, whole=one, table=TABLE),
    )


def _mean(metric: str, figures: Iterable[BehaviorFigure]) -> BehaviorFigure:
    """A metric's mean over the data sets, like the paper's column *Avg.*; no value if one has none."""
    of = [figure for figure in figures if figure.key.startswith(f"{metric}_")]
    values = [figure.value for figure in of if figure.value is not None]
    return BehaviorFigure(
        key=f"{metric}_{AVERAGE}",
        label=f"{AVERAGE} {METRICS[metric]}",
        value=sum(values) / len(values) if len(values) == len(of) else None,
        unit="share",
        episodes=sum(figure.episodes for figure in of),
        table=TABLE,
    )


def printed_in_2(key: str, played: MethodEpisodes) -> dict[str, str]:
    """Method to the paper's figure in Table 2 for this model, in percent; empty if the paper has none. An
    average has none beside another choice of data sets."""
    backbone = BACKBONES.get(played.model.rpartition("/")[2], BACKBONE)
    figures = _printed(2, backbone, key)
    asked = {task.spec["dataset"] for task in played.tasks.values()}
    if key.endswith(AVERAGE) and asked != {*MULTI_HOP, "simpleqa"}:
        figures = {}
    return dict.fromkeys(L0_METHODS, "") | {m: figures.get(name, "") for m, name in PRINTED.items()}


def printed_in_1(key: str, played: MethodEpisodes) -> dict[str, str]:
    """The same for Table 1, whose other agents have the names that the paper gives them."""
    ours = {name: method for method, name in PRINTED.items()}
    figures = _printed(1, "Qwen2.5-7B", key)
    return {"explorer": ""} | {ours.get(name, name): figure for name, figure in figures.items()}


@cache
def printed() -> pl.DataFrame:
    """Every figure of L0's Tables 1 and 2, in percent with the paper's decimals: ``table``, ``backbone``,
    ``method``, ``dataset``, ``metric`` and ``percent``.

    Where the paper's text says something else, the tables count. Table 1 names no metric: its rows for L0 are
    the exact match of Table 2's 7B model, and its other rows were "adopted from those reported in
    ZeroSearch", not run by L0.
    """
    return pl.read_csv(_FILE.read_bytes(), schema_overrides={"percent": pl.Float64, "table": pl.Int64})


def _printed(table: int, backbone: str, key: str) -> dict[str, str]:
    """L0's name of a method to its figure as printed."""
    metric, _, dataset = key.partition("_")
    rows = printed().filter(table=table, backbone=backbone, metric=metric, dataset=dataset)
    return {name: f"{percent:.2f}" for name, percent in rows.select("method", "percent").iter_rows()}
