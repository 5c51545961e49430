"""Search over the shared paragraphs: the time of an answer, and whether it contains the gold paragraphs.

    python -m benchmarks.search [--data ../shared/data/qa] [--top-k 10] > benchmarks/results/search.json

Every question that names its gold paragraphs is used as the query of one search. Three shares of the
questions are counted: *all titles* of the gold paragraphs among the hits, *all paragraphs* (those of the
question's own context under these titles), and *any* of the titles. An agent that searches several times can
do better. The index is built from scratch in its own folder; latencies are for one thread, snippets included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.environments.notebook_qa.search.backend import CachedSearch
from skillpress.environments.notebook_qa.search.index import index_of
from skillpress.environments.notebook_qa.search.tantivy_search import TantivySearch


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of the work, and its milliseconds."""
    started = time.perf_counter()
    done = work()
    return done, 1000 * (time.perf_counter() - started)


def spread(times: Sequence[float]) -> dict[str, float]:
    """Statistics in milliseconds."""
    ordered = sorted(times)
    return {
        "median": statistics.median(ordered),
        "p95": ordered[int(0.95 * len(ordered))],
        "largest": ordered[-1],
    }


def gold_paragraphs(questions: pl.DataFrame, titles: Mapping[str, str]) -> list[set[str]]:
    """For each question, the paragraphs of its context with a gold title."""
    return [
        {paragraph for paragraph in context if titles[paragraph] in gold}
        for context, gold in questions.select("context_ids", "supporting_titles").iter_rows()
    ]


def recall(search: TantivySearch, questions: pl.DataFrame, titles: Mapping[str, str], top_k: int) -> Any:
    """Shares of questions that were found, and the time of a search."""
    found = {"all_titles": 0, "all_paragraphs": 0, "any_title": 0}
    times = []
    golds = gold_paragraphs(questions, titles)
    rows = questions.select("question", "supporting_titles").iter_rows()
    for (question, supporting), paragraphs in zip(rows, golds, strict=True):
        hits, milliseconds = timed(partial(search.search, question, top_k))
        times.append(milliseconds)
        hit_titles = {hit.title for hit in hits}
        found["all_titles"] += set(supporting) <= hit_titles
        found["all_paragraphs"] += paragraphs <= {hit.paragraph_id for hit in hits}
        found["any_title"] += not hit_titles.isdisjoint(supporting)
    shares = {name: count / questions.height for name, count in found.items()}
    return {"questions": questions.height, "recall": shares, "milliseconds": spread(times)}


def measure(data: Path, home: Path, top_k: int) -> dict[str, Any]:
    """The index, every data set, reading and cached answers."""
    corpus = data / "paragraphs.parquet"
    folder, built = timed(lambda: index_of(corpus, home))
    search, opened = timed(lambda: TantivySearch(folder))
    titles = dict(pl.read_parquet(corpus, columns=["id", "title"]).iter_rows())
    questions = pl.read_parquet(data / "questions.parquet").filter(pl.col("context_ids").list.len() > 0)
    cached = CachedSearch(search, 1024)
    asked = questions["question"].head(500).to_list()
    for question in asked:
        cached.search(question, top_k)
    pages = list(titles.values())[:1000]
    return {
        "paragraphs": len(titles),
        "index": {
            "built_seconds": built / 1000,
            "opened_milliseconds": opened,
            "megabytes": sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
        },
        "datasets": {
            str(name): recall(search, rows, titles, top_k)
            for (name,), rows in questions.sort("dataset", "id").group_by("dataset", maintain_order=True)
        },
        "read_milliseconds": spread([timed(partial(search.read, page))[1] for page in pages]),
        "remembered_milliseconds": spread([timed(partial(cached.search, text, top_k))[1] for text in asked]),
    }  # fmt: skip


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    home = os.environ.get("SKILLPRESS_DATA") or "../shared/data"
    parser.add_argument(
        "--data", type=Path, default=Path(home) / "qa", help="folder with paragraphs and questions"
    )
    parser.add_argument("--top-k", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(chosen.data, Path(folder), chosen.top_k)
    print(json.dumps({
        **found,
        "setting": {"top_k": chosen.top_k, "threads": 1},
        "versions": {"tantivy": version("tantivy"), "polars": pl.__version__},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0], "cores": os.cpu_count()},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
