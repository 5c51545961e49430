"""Which questions are kept: each one is kept or has exactly one reason, whatever the order of the rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.questions import (
    QUESTION_COLUMNS,
    REASONS,
    alias_keys,
    judged,
    question_key,
)

Row = tuple[str, str, str | None, list[str | None] | None]


def table(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(QUESTION_COLUMNS), orient="row")


def report(found: pl.DataFrame) -> Counter[str]:
    """Number of questions by reason."""
    return Counter(reason or "kept" for reason in found["reason"])


def asked(question: str | None, answers: list[str | None] | None = None) -> pl.DataFrame:
    return table([("1", "set", question, ["Paris"] if answers is None else answers)])


NOTHING = table([])


def reason_of(question: str | None, answers: list[str | None] | None = None) -> str | None:
    found: str | None = judged(asked(question, answers), NOTHING, 8)["reason"].item()
    return found


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (None, "no_question"),
        ("?! ...", "no_question"),
        ("Name two fibres which are made of proteins", "asks_for_several"),
        ("what are the names of the hunger games", "asks_for_several"),
        ("who is the founder of google and when was it founded", "asks_for_several"),
        ("Name the singer of the pop group Yazoo?", None),
        ("What 2017 film did she play in?", None),
        ("Why did ric flair go back to wcw", "open_ended"),
        ("how do you make cement", "open_ended"),
        ("how do you say zest for life in french", None),
        ("How to Eat, released in which year, is by Nigella Lawson?", None),
        ("who was the greatest pool player of all time", "opinion"),
        ("What do you think of Bollywood?", "opinion"),
        ("What should I read next", "opinion"),
        ("who won the oscar for best actor in 1975", None),
        ("Who was the director of \"Who is the best?\", a film of 1975?", None),
        ("Who is the current president of Peru?", "moving"),
        ("who is the president of peru", "moving"),
        ("Who was the president of Peru in 1985?", None),
        ("Who is the first president of Peru?", None),
        ("when will the next episode of flash be aired", "moving"),
        ("how old is the queen", "moving"),
        ("who did they beat this year", "moving"),
        ("As of 2018, who is the current head of the museum?", None),
        ("Who wrote the song \"Right Now\"?", None),
        ("Who is older, Annie Morton or Terry Richardson?", None),
    ],
)  # fmt: skip
def test_the_rules_for_one_question(question: str | None, reason: str | None) -> None:
    assert reason_of(question) == reason


def test_answers_must_be_there_and_short() -> None:
    assert reason_of("Who wrote it?", []) == "no_answer"
    assert reason_of("Who wrote it?", ["", None, "?"]) == "no_answer"
    assert reason_of("Who wrote it?", ["one two three four five six seven eight"]) is None
    assert reason_of("Who wrote it?", ["one two three four five six seven eight nine"]) == "overlong_answer"
    assert reason_of("Who wrote it?", ["one two three four five six seven eight nine", "short"]) is None


def test_a_missing_list_of_answers_is_no_answer() -> None:
    assert judged(table([("1", "set", "Who wrote it?", None)]), NOTHING, 8)["reason"].item() == "no_answer"


def test_what_an_evaluation_set_asks_is_not_trained_on_however_it_is_written() -> None:
    evaluation = table([("9", "test", "Who wrote the “Iliad”?", ["Homer"])])
    for question in ("Who wrote the “Iliad”?", "who wrote Iliad", "WHO  wrote the a `iliad`!"):
        assert judged(asked(question), evaluation, 8)["reason"].item() == "in_evaluation"
    assert judged(asked("Who wrote Iliad II?"), evaluation, 8)["reason"].item() is None


def test_of_questions_that_agree_the_first_by_data_set_and_id_is_kept() -> None:
    rows: list[Row] = [
        ("2", "b", "Who wrote the Iliad?", ["Homer"]),
        ("3", "a", "who wrote iliad", ["homer", "Homeros"]),
        ("1", "b", "Who wrote the Iliad", ["Homer."]),
        ("1", "a", "Who wrote the Odyssey?", ["Homer"]),
    ]
    assert judged(table(rows), NOTHING, 8)["reason"].to_list() == ["duplicate", None, "duplicate", None]


def test_questions_whose_answers_have_nothing_in_common_all_fall() -> None:
    rows: list[Row] = [
        ("1", "a", "Who wrote it?", ["Homer", "Ovid"]),
        ("2", "a", "who wrote it", ["Ovid", "Dante"]),
        ("3", "a", "Who wrote it", ["Dante", "Homer"]),
    ]
    assert judged(table(rows), NOTHING, 8)["reason"].to_list() == ["conflicting"] * 3
    assert judged(table(rows[:2]), NOTHING, 8)["reason"].to_list() == [None, "duplicate"]


def test_what_falls_by_itself_hides_no_other_question() -> None:
    rows: list[Row] = [
        ("1", "a", "Who wrote it?", []),
        ("2", "a", "Who wrote it?", ["Homer"]),
        ("3", "a", "Who wrote it?", ["one two three four five six seven eight nine"]),
    ]
    assert judged(table(rows), NOTHING, 8)["reason"].to_list() == ["no_answer", None, "overlong_answer"]


def test_other_columns_and_the_order_of_rows_stay() -> None:
    questions = table([("2", "a", "Who?", ["x"]), ("1", "a", "Where?", ["y"])]).with_columns(hops=pl.lit(2))
    assert judged(questions, NOTHING, 8).drop("reason").equals(questions)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (asked("Who?").drop("answers"), "questions: column answers is missing; it must be List"),
        (asked("Who?").with_columns(id=pl.lit(1)), "column id is Int32; it must be String"),
        (asked("Who?").with_columns(id=pl.lit(None, pl.String)), "id is empty in row 0"),
        (pl.concat([asked("Who?")] * 2), "id 1 occurs more than once in the data set set"),
    ],
)
def test_a_table_that_cannot_be_judged_is_refused(questions: pl.DataFrame, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        judged(questions, NOTHING, 8)


WORDS = ["who", "why", "the", "a", "wrote", "latest", "iliad", "?", "“", "three", "are", "best", "Élan"]
ALIASES = ["Homer", "homer.", "the", "", "Ovid", "a b c d e", None]
texts = st.none() | st.text(max_size=8) | st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
aliases = st.none() | st.lists(st.sampled_from(ALIASES), max_size=3)
questions_of = st.lists(st.tuples(st.sampled_from("ab"), texts, aliases), max_size=12).map(
    lambda rows: table([(str(place), dataset, *rest) for place, (dataset, *rest) in enumerate(rows)])
)  # fmt: skip


@settings(max_examples=60)
@given(questions_of, questions_of, st.randoms(use_true_random=False))
def test_each_question_is_kept_or_has_one_reason_in_any_order(
    questions: pl.DataFrame, evaluation: pl.DataFrame, chance: random.Random
) -> None:
    found = judged(questions, evaluation, 4)
    assert found.height == questions.height
    assert set(found["reason"].drop_nulls()) <= set(REASONS)

    order = list(range(questions.height))
    chance.shuffle(order)
    assert judged(questions[order], evaluation, 4).equals(found[order])

    counts = report(found)
    assert sum(counts[reason] for reason in ("kept", *REASONS)) == questions.height


@settings(max_examples=60)
@given(questions_of, questions_of)
def test_the_kept_are_different_answerable_unseen_and_kept_again(
    questions: pl.DataFrame, evaluation: pl.DataFrame
) -> None:
    """By brute force over pairs of questions."""
    found = judged(questions, evaluation, 4).with_columns(key=question_key(), aliases=alias_keys())
    kept = found.filter(pl.col("reason").is_null())
    assert kept["key"].is_unique().all()
    assert not set(kept["key"]) & set(evaluation.select(key=question_key())["key"])
    assert all(kept["aliases"].list.len() > 0)
    for key, reason, place in found.select("key", "reason", "dataset").iter_rows():
        rivals = found.filter(pl.col("key") == key)
        if reason == "duplicate":
            first = rivals.filter(pl.col("reason").is_null())
            assert first.height == 1 and first["dataset"].item() <= place
        if reason == "conflicting":
            lists = rivals.filter(pl.col("reason") == "conflicting")["aliases"].to_list()
            assert len(lists) > 1 and not set.intersection(*map(set, lists))
    again = judged(questions.filter(found["reason"].is_null()), evaluation, 4)
    assert again["reason"].null_count() == again.height


FORMS = [
    "Who was the mother of {}?",
    "Where was the {} born",
    "who is the president of {}",
    "Why did {} go?",
]


def test_twenty_thousand_questions_are_judged_at_once() -> None:
    """Each question asked in the first two forms is kept once, unless it is an evaluation question."""
    chance = random.Random(0)
    texts = [chance.choice(FORMS).format(f"Name{chance.randrange(4000)}") for _ in range(20_000)]
    rows: list[Row] = [
        (str(place), chance.choice("abcd"), text, ["Ann", "Anna"]) for place, text in enumerate(texts)
    ]
    found = report(judged(table(rows), table(rows[:50]), 8))
    good = {text for text in texts if text.startswith(("Who was", "Where was"))}
    assert found["kept"] == len(good - set(texts[:50]))
    assert found["moving"] == sum("president" in text for text in texts)
    assert found["open_ended"] == sum(text.startswith("Why") for text in texts)


def test_the_shared_questions_lose_few_to_each_rule_and_none_to_an_overlap(qa_data: Path) -> None:
    questions = pl.read_parquet(qa_data / "questions.parquet")
    trained_on = pl.col("split") == "train"
    training = questions.filter(trained_on)
    found = report(judged(training, questions.filter(~trained_on), 10))
    assert found["in_evaluation"] == found["conflicting"] == 0
    assert 0.9 < found["kept"] / training.height < 1
    assert all(found[reason] / training.height < 0.05 for reason in REASONS)
