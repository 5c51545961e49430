"""Makes the environment's two tables from the public data sets that L0 names.

    python -m skillpress.environments.notebook_qa.public_data FOLDER hotpotqa:train=hotpot_train_v1.1.json \
        musique:test=musique_ans_v1.0_dev.jsonl simpleqa:test=simple_qa_test_set.csv

A file is a data set's own release (JSON, JSON Lines, CSV) or its Parquet from the Hugging Face hub. You name
the split that its questions are for. Nothing is downloaded, and no data come with skillpress.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.arguments import CommandParser
from skillpress.core.errors import UserError
from skillpress.core.storage import atomic_directory
from skillpress.environments.notebook_qa.parameters import PARAGRAPHS, QUESTIONS
from skillpress.environments.notebook_qa.tasks import COLUMNS

SPLITS = ("train", "dev", "test")
READ = (
    "id", "_id", "question_id", "QuestionId", "question", "Question", "problem", "answer", "Answer",
    "answer_aliases", "answerable", "supporting_facts", "context", "paragraphs", "type",
)  # fmt: skip
"""The columns that are read of Parquet files; TriviaQA's other columns hold gigabytes."""


Paragraph = tuple[str, str]
"""(title, text)."""


@dataclass(frozen=True)
class PublicQuestion:
    """A question as a data set has it."""

    question: str
    answers: Sequence[str]
    """Aliases of one answer; empty if the data set has no answer."""
    id: str = ""
    """Empty if the data set gives its questions no ids."""
    titles: Sequence[str] = ()
    """Titles of the paragraphs that hold the answer."""
    kind: str | None = None
    paragraphs: Sequence[Paragraph] = ()


@dataclass(frozen=True)
class Source:
    """A file, with the data set and the split of its questions."""

    dataset: str
    split: str
    file: Path

    def read(self) -> Iterator[PublicQuestion]:
        """Its questions in order.

        Raises:
            UserError: the file cannot be read, or a row has another form.
        """
        for number, row in enumerate(_rows(self.file)):
            try:
                found = READERS[self.dataset](row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UserError(
                    f"{self.file}: row {number} is not a question of {self.dataset} in its published form "
                    f"({type(error).__name__}: {error}); its keys are {', '.join(map(str, row))[:200]}"
                ) from error
            yield found if found.id else replace(found, id=f"{self.dataset}-{self.split}-{number}")


def _two_hops(row: Mapping[str, Any], kind: str | None = None) -> PublicQuestion:
    """HotpotQA and 2WikiMultihopQA: lists of [title, sentences], or columns of titles and of sentences."""
    facts, context = _decoded(row["supporting_facts"]), _decoded(row["context"])
    if isinstance(context, Mapping):
        sentences = context["sentences"] if "sentences" in context else context["content"]
        context = list(zip(context["title"], sentences, strict=True))
    titles = facts["title"] if isinstance(facts, Mapping) else [fact[0] for fact in facts]
    return PublicQuestion(
        question=row["question"],
        answers=[row["answer"]] if row["answer"] else [],
        id=_first(row, "_id", "id"),
        titles=titles,
        kind=kind,
        paragraphs=[(title, _joined(sentences)) for title, sentences in context],
    )


def _musique(row: Mapping[str, Any]) -> PublicQuestion:
    """MuSiQue. Some of its questions are not answered by their paragraphs."""
    paragraphs = row["paragraphs"]
    return PublicQuestion(
        question=row["question"],
        answers=[row["answer"], *row["answer_aliases"]] if row.get("answerable", True) else [],
        id=row["id"],
        titles=[each["title"] for each in paragraphs if each["is_supporting"]],
        kind=row["id"].partition("__")[0],
        paragraphs=[(each["title"], each["paragraph_text"]) for each in paragraphs],
    )


def _triviaqa(row: Mapping[str, Any]) -> PublicQuestion:
    answer = {name.lower(): value for name, value in _first(row, "answer", "Answer").items()}
    return PublicQuestion(
        question=_first(row, "question", "Question"),
        answers=[answer["value"], *(answer["aliases"] or [])] if answer["value"] else [],
        id=f"triviaqa-{_first(row, 'question_id', 'QuestionId')}",
    )


def _nq_open(row: Mapping[str, Any]) -> PublicQuestion:
    answer = row["answer"]
    return PublicQuestion(row["question"], [answer] if isinstance(answer, str) else list(answer))


READERS: Mapping[str, Callable[[Mapping[str, Any]], PublicQuestion]] = {
    "hotpotqa": _two_hops,
    "2wikimultihopqa": lambda row: _two_hops(row, row["type"]),
    "musique": _musique,
    "triviaqa": _triviaqa,
    "nq_open": _nq_open,
    "simpleqa": lambda row: PublicQuestion(row["problem"], [row["answer"]]),
    "bamboogle": lambda row: PublicQuestion(row["Question"], [row["Answer"]]),
}
"""Maps each data set to the reader of one of its rows."""


def _first(row: Mapping[str, Any], *names: str) -> Any:
    """The value under the first of these names that the row has."""
    return row[next((name for name in names if name in row), names[0])]


def _decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(filter(None, (sentence.strip() for sentence in sentences)))


def _rows(file: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a file, by its ending.

    Raises:
        UserError: the file is missing or damaged, or of another kind.
    """
    try:
        if file.suffix == ".parquet":
            known = [name for name in pl.read_parquet_schema(file) if name in READ]
            for part in pl.scan_parquet(file).select(known).collect_batches(chunk_size=1024):
                yield from part.iter_rows(named=True)
        elif file.suffix == ".jsonl":
            with file.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.strip())
        elif file.suffix == ".json":
            found = json.loads(file.read_text(encoding="utf-8"))
            yield from found["Data"] if isinstance(found, dict) else found
        elif file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as lines:
                yield from csv.DictReader(lines)
        else:
            raise UserError(f"{file}: not a .json, .jsonl, .csv or .parquet file")
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from error


def convert(sources: Sequence[Source], folder: Path) -> Counter[str]:
    """Write both tables into a new folder, and return counts: of each data set's questions by split, of
    paragraphs, of questions without an answer, and of questions whose id occurred before.

    Raises:
        UserError: a file cannot be read, or there is no question.
    """
    counts: Counter[str] = Counter()
    questions: dict[tuple[str, str], dict[str, Any]] = {}
    paragraphs: dict[str, Paragraph] = {}
    for source in sources:
        for found in source.read():
            if not found.answers:
                counts["without an answer"] += 1
                continue
            if (source.dataset, found.id) in questions:
                counts["ids that came before"] += 1
                continue
            counts[f"{source.dataset} {source.split}"] += 1
            questions[source.dataset, found.id] = {
                "id": found.id,
                "dataset": source.dataset,
                "split": source.split,
                "question": found.question,
                "answers": list(dict.fromkeys(found.answers)),
                "supporting_titles": list(dict.fromkeys(found.titles)),
                "kind": found.kind,
            }
            for title, text in found.paragraphs:
                name = sha256(f"{title}\n{text}".encode()).hexdigest()[:16]
                paragraphs.setdefault(f"p{name}", (title, text))
    if not questions:
        raise UserError(f"{', '.join(str(source.file) for source in sources)}: no question has an answer")
    with atomic_directory(folder) as made:
        pl.DataFrame(list(questions.values()), schema=COLUMNS).write_parquet(made / QUESTIONS)
        texts = [(name, *each) for name, each in paragraphs.items()]
        columns = {"id": pl.String, "title": pl.String, "text": pl.String}
        pl.DataFrame(texts, schema=columns, orient="row").write_parquet(made / PARAGRAPHS)
    counts["paragraphs"] = len(paragraphs)
    return counts


def source(text: str) -> Source:
    """The type of an argument ``DATASET:SPLIT=FILE``."""
    name, _, file = text.partition("=")
    dataset, _, split = name.partition(":")
    if dataset not in READERS or split not in SPLITS or not file:
        raise UserError(
            f"{text}: must be DATASET:SPLIT=FILE with one of {', '.join(READERS)}, and {', '.join(SPLITS)}"
        )
    return Source(dataset, split, Path(file))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = CommandParser(
        prog="python -m skillpress.environments.notebook_qa.public_data", description=__doc__
    )
    parser.add_argument(
        "folder", type=Path, help="new folder for the two tables; name it by environment.data"
    )
    parser.add_argument("sources", nargs="+", metavar="DATASET:SPLIT=FILE")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.folder.exists():
            raise UserError(f"{chosen.folder}: exists already; name a new folder")
        counts = convert([source(text) for text in chosen.sources], chosen.folder)
    except UserError as error:
        parser.exit(2, f"{error}\n")
    print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
