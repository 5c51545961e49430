"""Which questions are suitable, and why the others are not.

L0 (section 4.3) chooses its 20,000 questions by "objectivity, temporal stability, and question difficulty".
These rules are ours. A question is dropped for the first of :data:`REASONS` that applies.
Reasons that depend only on the question come first, then the overlap with the evaluation sets, then reasons
that depend on the other remaining questions. So the original of a duplicate is always a question that was
kept. The order of the rows does not matter.

For two of the reasons, :data:`RATED`, L0 uses a model's ratings. If such ratings exist, they replace these
two rules (``ratings.py``).

The rules read surface forms: some of the questions that they drop are good (``i know what you did last
summer``), and the answers of some that they keep do change. Words in quotation marks never count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from skillpress.core.errors import TaskError

QUESTION_COLUMNS: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "dataset": pl.String(),
    "question": pl.String(),
    "answers": pl.List(pl.String()),
}
"""Required columns of a table of questions; ``answers`` are aliases of one answer. Other columns are kept
unchanged."""

REASONS = {
    "no_question": "no letter or digit is in the question",
    "no_answer": "no alias has a letter or digit",
    "overlong_answer": "even the shortest alias has too many words to be matched exactly",
    "asks_for_several": "the answer is a list, which may be written in many ways",
    "open_ended": "asks why or how to: no short answer is the only right one",
    "opinion": "asks for a judgement",
    "moving": "the answer changes with time, and no date is given",
    "in_evaluation": "an evaluation set asks the same, after normalisation",
    "conflicting": "asked more than once, and no alias is common to all of its answers",
    "duplicate": "asked before, after normalisation; the first by data set and id is kept",
}
"""Maps each reason to its meaning; the first reason that applies is given."""

_OFFICE = (
    r"(?:president|vice president|prime minister|chief minister|deputy prime minister|governor|mayor|premier"
    r"|chancellor|head of state|speaker|chief justice|secretary of \w+|minister of \w+|ceo|chairman"
    r"|head coach|manager|captain|owner|mp)"
)
_SERIES = r"(?:season|episode|series|movie|film|book|album|game|election|world cup|olympics|super bowl)"
_NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|1?\d)"
PATTERNS = {
    "asks_for_several": (
        rf"\b(?:name|list|give|state|mention) (?:all |any |the )?{_NUMBER}\b",
        r"^(?:list|name (?:all|some)|a list) ",
        rf"\b(?:which|what|who)(?: are| were)?(?: the)? {_NUMBER} \w+",
        r"\bwhat (?:are|were) (?:the )?(?:names|parts|types|kinds|members|ranks|levels|layers|steps)\b",
        r"\band (?:what|when|where|who|which) (?:is|are|was|were|did|does)\b",
    ),
    "open_ended": (
        r"^why\b",
        r"^how to \w+ \w|^how (?:can|should|do) (?:i|we)\b|^how can you\b",
        r"^how do you (?:make|get|use|know|become|write|find|prevent|fix|do)\b",
        r"^(?:explain|describe|discuss)\b",
    ),
    "opinion": (
        r"\bin your opinion\b|^do you (?:think|like|prefer|believe)\b|^(?:what|who) do you think\b",
        r"^(?:what |who |where |when |how )?should (?:i|we|you|one)\b|\b(?:your|my) favou?rite\b",
        r"^(?:who|what|which|where|when) (?:is|are|was|were) the (?:best|worst|greatest|coolest|funniest)\b",
        r"^(?:what|where|when|which) .*\bbest (?:way|place|thing|time|kind|reason) (?:to|for|of)\b",
        r"\bmost (?:beautiful|handsome|interesting|boring|attractive|overrated|underrated)\b",
        r"^(?:is|are) it (?:good|bad|better|worth|wrong|ok|okay|right) to\b",
    ),
    "moving": (
        r"\b(?:current|currently|latest|newest|today|upcoming|reigning|most recent|so far|to date)\b",
        r"\b(?:right now|at the moment|at present|these days|nowadays|until now|up to now|now)\b",
        r"\b(?:this|last|next|coming) (?:year|season|month|week|weekend|summer|winter|term)\b",
        rf"\b(?:next|last|new) {_SERIES}\b",
        r"\blast time\b|\bstill (?:alive|living|active|in use|in publication|playing|standing|on air)\b",
        rf"^(?:who is|who's|whos|name) (?:the )?(?:\w+ ){{0,3}}{_OFFICE}\b",
        r"\b(?:oldest|youngest) living\b|\bliving (?:person|man|woman|member)\b",
        r"\b(?:richest|highest.paid|most (?:followed|subscribed|viewed|watched|streamed|liked))\b",
        r"^how (?:old is|long has|much (?:is|does))\b|\bnet worth\b",
        r"^how many (?:\w+ ){1,4}(?:are there|are left|have been)\b",
    ),
}
"""Maps reasons to patterns (of Rust's regex crate) for lower-case questions without their quotations."""

SETTLED = (
    r"\bas of [^?,]*\b(?:1[0-9]|20)[0-9]{2}\b",
    rf"\b(?:first|second|third|fourth|former|longest.serving|\d+(?:st|nd|rd|th)) (?:\w+ )?{_OFFICE}\b",
)
"""Patterns of questions whose answers do not change in spite of the above: they contain a date, or an ordinal
number."""

RATED = ("opinion", "moving")
"""The reasons that a model's ratings replace."""

_QUOTED = r"\"[^\"]*\"|“[^”]*”|``[^']*''"
_PLACE = ("dataset", "id")


def judged(
    questions: pl.DataFrame, evaluation: pl.DataFrame, max_answer_words: int, rated: bool = False
) -> pl.DataFrame:
    """Return the questions in their order, with ``reason``: why each is dropped, or null if it is kept.

    Args:
        questions: with :data:`QUESTION_COLUMNS`; an id is unique within its data set.
        evaluation: questions that must not be trained on, in the same form.
        max_answer_words: maximum number of words of the shortest alias.
        rated: leave out the rules that a model's ratings replace.

    Raises:
        TaskError: a column is missing or of another type, or an id is missing or repeated.
    """
    _check(questions, "questions")
    _check(evaluation, "evaluation questions")
    taken = evaluation.select(key=question_key()).unique()
    alone = (
        questions.lazy()
        .select(*_PLACE, "question", key=question_key(), aliases=alias_keys())
        .with_columns(reason=_reason_alone(max_answer_words, rated))
        .join(taken.lazy().with_columns(taken=pl.lit(True)), on="key", how="left")
        .with_columns(reason=_first("reason", pl.col("taken"), "in_evaluation"))
        .collect()
    )
    beside = _reasons_beside(alone.filter(pl.col("reason").is_null()))
    reasons = alone.select(*_PLACE, "reason").join(beside, on=_PLACE, how="left", validate="1:1")
    found = reasons.select(*_PLACE, reason=pl.coalesce("reason", "beside"))
    return questions.join(found, on=_PLACE, how="left", maintain_order="left", validate="1:1")


def reason_in_words() -> pl.Expr:
    """The first of :data:`RATED` that applies to a question's words; null if none does."""
    applies = _patterns()
    return pl.coalesce(pl.when(applies[reason]).then(pl.lit(reason)) for reason in RATED)


def read_rows(file: str | Path, place: str) -> pl.DataFrame:
    """A Parquet file, or a ``TaskError`` that calls it ``place``."""
    try:
        return pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TaskError(f"{place} is not a readable Parquet file ({error})") from error


def read_columns(file: str | Path, columns: Mapping[str, pl.DataType], place: str) -> pl.DataFrame:
    """The columns of a Parquet file.

    Raises:
        TaskError: the file cannot be read, or a column is missing or of another type.
    """
    rows = read_rows(file, place)
    check_columns(rows, columns, place)
    return rows.select(*columns)


def check_columns(rows: pl.DataFrame, columns: Mapping[str, pl.DataType], place: str) -> None:
    """Raise a ``TaskError`` if a column is missing or of another type."""
    for name, kind in columns.items():
        found = rows.schema.get(name)
        if found != kind:
            raise TaskError(f"{place}: column {name} is {found or 'missing'}; it must be {kind}")


def question_key() -> pl.Expr:
    """A key that different spellings of one question share: letters and digits (NFKC) in lower case, with
    single spaces and without English articles."""
    return _bare(pl.col("question").fill_null(""))


def alias_keys() -> pl.Expr:
    """The different aliases of an answer in the same form, sorted, without empty ones."""
    keys = pl.col("answers").list.eval(_bare(pl.element().fill_null("")))
    return keys.list.eval(pl.element().filter(pl.element() != "").unique().sort()).fill_null([])


def _bare(text: pl.Expr) -> pl.Expr:
    words = text.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
    # The spaces are doubled, so that two articles in a row do not share one.
    apart = (" " + words.str.replace_all(" ", "  ", literal=True) + " ").str.replace_all(
        " (?:a|an|the) ", " "
    )
    return apart.str.replace_all(" +", " ").str.strip_chars()


def _reason_alone(max_answer_words: int, rated: bool) -> pl.Expr:
    """The first reason that depends only on the question; null if there is none."""
    words = pl.col("aliases").list.eval(pl.element().str.count_matches(" ") + 1).list.min()
    applies = {
        "no_question": pl.col("key") == "",
        "no_answer": pl.col("aliases").list.len() == 0,
        "overlong_answer": words > max_answer_words,
        **{reason: rule for reason, rule in _patterns().items() if not (rated and reason in RATED)},
    }
    return pl.coalesce(pl.when(rule).then(pl.lit(reason)) for reason, rule in applies.items())


def _patterns() -> dict[str, pl.Expr]:
    """Maps the reasons of :data:`PATTERNS` to whether they apply to ``question``."""
    text = pl.col("question").fill_null("").str.normalize("NFKC").str.to_lowercase()
    plain = text.str.replace_all(_QUOTED, " ").str.strip_chars()
    applies = {reason: plain.str.contains("|".join(patterns)) for reason, patterns in PATTERNS.items()}
    applies["moving"] &= ~text.str.contains("|".join(SETTLED))
    return applies


def _reasons_beside(left: pl.DataFrame) -> pl.DataFrame:
    """The reason (``beside``) for each question that remains after the rules for single questions."""
    asked = pl.len().over("key")
    # An alias that all rows of a question contain is counted as often as the question is asked.
    common = (
        left.select("key", asked=asked, alias="aliases")
        .explode("alias")
        .group_by("key", "alias")
        .agg(shared=pl.len() == pl.col("asked").first())
        .group_by("key")
        .agg(agreed=pl.col("shared").any())
    )
    first = pl.struct(_PLACE).rank("ordinal").over("key") == 1
    return (
        left.join(common, on="key", how="left")
        .with_columns(beside=pl.when(~pl.col("agreed")).then(pl.lit("conflicting")))
        .with_columns(beside=_first("beside", ~first, "duplicate"))
        .select(*_PLACE, "beside")
    )


def _first(column: str, rule: pl.Expr, reason: str) -> pl.Expr:
    """The column, with the reason filled in where the column is null and the rule applies."""
    return pl.coalesce(column, pl.when(rule).then(pl.lit(reason)))


def _check(questions: pl.DataFrame, what: str) -> None:
    check_columns(questions, QUESTION_COLUMNS, what)
    for name in _PLACE:
        if questions[name].null_count():
            raise TaskError(f"{what}: {name} is empty in row {questions[name].is_null().arg_max()}")
    repeated = questions.filter(questions.select(_PLACE).is_duplicated())
    if not repeated.is_empty():
        dataset, name = repeated.select(_PLACE).row(0)
        raise TaskError(f"{what}: id {name} occurs more than once in the data set {dataset}")
