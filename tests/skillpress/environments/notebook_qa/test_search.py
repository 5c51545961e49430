"""The search: what it finds and in which order, and that no text is interpreted as syntax."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from math import log
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.notebook_qa.search import CachedSearch, Hit, SearchError, open_search
from skillpress.environments.notebook_qa.search.index import index_of
from skillpress.environments.notebook_qa.search.tantivy_search import TantivySearch
from skillpress.environments.notebook_qa.search.texts import (
    QUERY_WORDS,
    SNIPPET_CHARACTERS,
    encodable,
    title_key,
)
from skillpress.environments.notebook_qa.search.words import query_words, snippet

PARAGRAPHS = [
    ("p0", "Ada Lovelace", "Ada Lovelace wrote about the Analytical Engine. She was a mathematician."),
    ("p1", "Analytical Engine", "The engine was designed by Charles Babbage in London."),
    ("p2", "Charles Babbage", "Babbage was born in London in 1791."),
    ("p3", "Charles Babbage", "He designed engines of brass."),
    ("p4", "To Be or Not to Be", "A comedy film of 1942 by Ernst Lubitsch."),
    ("p5", "Gävle", "A town in Sweden."),
    ("p6", "twin", "the same words"),
    ("p7", "twin", "the same words"),
]


def write_corpus(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    pl.DataFrame(rows, schema=["id", "title", "text"], orient="row").write_parquet(path)
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    return index_of(write_corpus(folder / "paragraphs.parquet", PARAGRAPHS), folder / "indexes")


@pytest.fixture(scope="module")
def search(index: Path) -> TantivySearch:
    return TantivySearch(index)


def ids(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.paragraph_id for hit in hits]


def test_a_paragraph_is_found_by_its_words_and_by_those_of_its_title(search: TantivySearch) -> None:
    assert ids(search.search("Where was Babbage born?", 1)) == ["p2"]
    assert set(ids(search.search("charles babbage", 10))) == {"p1", "p2", "p3"}
    assert [hit.title for hit in search.search("brass", 10)] == ["Charles Babbage"]


def test_case_accents_and_english_endings_do_not_matter(search: TantivySearch) -> None:
    assert ids(search.search("GAVLE", 3)) == ids(search.search("gävle", 3)) == ["p5"]
    assert ids(search.search("mathematicians", 3)) == ["p0"]


def test_a_query_of_common_words_alone_is_still_a_query(search: TantivySearch) -> None:
    assert ids(search.search("To Be or Not to Be", 1)) == ["p4"]
    assert query_words("the birth of Ada") == query_words("birth Ada")


def test_scores_are_bm25s_and_fall(search: TantivySearch) -> None:
    """The score by the formula, for a word that occurs once in one short paragraph (tantivy stores lengths up
    to 40 words exactly)."""
    lengths = [len((title + " " + text).replace(".", "").split()) for _, title, text in PARAGRAPHS]
    mean = sum(lengths) / len(lengths)
    idf = log(1 + (len(PARAGRAPHS) - 1 + 0.5) / (1 + 0.5))
    norm = 1.2 * (1 - 0.75 + 0.75 * lengths[3] / mean)
    (hit,) = search.search("brass", 10)
    assert hit.score == pytest.approx(idf * 2.2 / (1 + norm), rel=1e-5)
    scores = [hit.score for hit in search.search("London engine designed Babbage", 10)]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)


def test_ties_go_to_the_paragraph_that_stands_first(search: TantivySearch) -> None:
    assert ids(search.search("same", 2)) == ["p6", "p7"]
    assert ids(search.search("same", 1)) == ["p6"]


def test_fewer_are_found_where_fewer_hold_a_word_and_none_for_no_words(search: TantivySearch) -> None:
    assert search.search("zeppelin", 5) == ()
    assert search.search("", 5) == search.search("?!* \n", 5) == ()
    for top_k in (0, 10**12):
        with pytest.raises(ValueError, match=f"top_k is {top_k}; 1 to 1000 hits"):
            search.search("Ada", top_k)


@pytest.mark.parametrize(
    "query",
    [
        'title:"', "+(", "-", "AND OR NOT", "[* TO *]", "london^", '"a b"~', "IN [", "text:{", "\\", "*:*",
        "a\x00b", "\ud800", "'; --", "a" * 100_000, "word " * 50_000, "\u202e", "ﬁ", "title_key:twin",
    ],
)  # fmt: skip
def test_syntax_is_text(search: TantivySearch, query: str) -> None:
    assert len(search.search(query, 5)) <= 5
    assert search.read(query) is None


def test_operators_and_fields_mean_nothing(search: TantivySearch) -> None:
    assert set(ids(search.search("brass AND sweden", 9))) == {"p3", "p5"}
    assert set(ids(search.search("-brass", 9))) == {"p3"}
    assert ids(search.search("title_key:twin", 9)) == ["p6", "p7"]  # only the word "twin"
    assert ids(search.search("bra*", 9)) == []


anything = st.text(st.characters() | st.sampled_from('+-:"*~^()[]{}\\/ANDORT '), max_size=60)


@given(anything)
def test_no_text_raises(search: TantivySearch, query: str) -> None:
    hits = search.search(query, 3)
    assert len(hits) <= 3
    assert all(len(hit.snippet) <= SNIPPET_CHARACTERS for hit in hits)
    page = search.read(query)
    assert page is None or page


def test_a_title_that_is_too_long_is_not_looked_at(search: TantivySearch) -> None:
    """The time of NFKC grows with the square of the number of these marks: for this title it would take
    hours."""
    hostile = "a" + "\u0301\u0323" * 1_000_000
    assert search.read(hostile) is None
    assert len(search.search(f"Ada {hostile}", 3)) > 0, "its beginning is still a query"
    with pytest.raises(ValueError, match=f"{len(hostile)} characters; at most 1000"):
        title_key(hostile)


def test_the_first_words_of_a_query_count() -> None:
    words = query_words(" ".join(f"w{number}" for number in range(1000)))
    assert words == tuple(f"w{number}" for number in range(QUERY_WORDS))


def test_reading_gives_all_paragraphs_of_a_title_in_their_order(search: TantivySearch) -> None:
    assert search.read("Charles Babbage") == f"{PARAGRAPHS[2][2]}\n\n{PARAGRAPHS[3][2]}"
    assert search.read("  charles\tBABBAGE ") == search.read("Charles Babbage")
    assert search.read(unicodedata.normalize("NFD", "Gävle")) == "A town in Sweden."
    assert search.read("Babbage") is None


def test_a_snippet_begins_with_the_sentence_that_says_most() -> None:
    text = "He was born in Gävle. He moved to London in 1815. London was large."
    assert snippet(text, query_words("London 1815"), 100) == "… He moved to London in 1815. London was large."
    assert snippet(text, query_words("nothing of it"), 100) == text


@given(anything, anything, st.integers(10, 80))
def test_a_snippet_keeps_within_its_limit_and_takes_words_from_the_text(
    text: str, query: str, limit: int
) -> None:
    shown = snippet(text, query_words(query), limit)
    assert len(shown) <= limit
    assert shown.removeprefix("… ").removesuffix(" …") in " ".join(encodable(text).split())


def test_a_snippet_holds_what_utf_8_can_hold() -> None:
    assert snippet("\ud800 in Gävle", query_words("\ud800"), 40) == "? in Gävle"


def test_an_index_is_made_once_and_named_by_the_corpus(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "a.parquet", PARAGRAPHS)
    first = index_of(corpus, tmp_path / "indexes")
    made = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    assert index_of(corpus, tmp_path / "indexes") == first
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == made
    other = index_of(write_corpus(tmp_path / "b.parquet", PARAGRAPHS[:3]), tmp_path / "indexes")
    assert other != first
    assert ids(TantivySearch(other).search("engine", 9)) == ["p1", "p0"]
    assert {path.name for path in (tmp_path / "indexes").iterdir()} == {first.name, other.name}


def test_two_that_make_an_index_at_once_both_get_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "a.parquet", PARAGRAPHS)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: open_search(corpus, tmp_path / "indexes"), range(4)))
    assert {tuple(ids(search.search("brass", 3))) for search in found} == {("p3",)}
    assert len(list((tmp_path / "indexes").iterdir())) == 1


def test_a_corpus_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    home = tmp_path / "indexes"
    with pytest.raises(SearchError, match=r"absent\.parquet: no such file"):
        index_of(tmp_path / "absent.parquet", home)
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(SearchError, match=r"text\.parquet: not a readable Parquet file"):
        index_of(tmp_path / "text.parquet", home)
    pl.DataFrame({"id": ["p"], "title": [1]}).write_parquet(tmp_path / "columns.parquet")
    with pytest.raises(SearchError, match=r"columns\.parquet: lacks the text columns title, text"):
        index_of(tmp_path / "columns.parquet", home)
    with pytest.raises(SearchError, match="holds no paragraphs"):
        index_of(write_corpus_of_type(tmp_path / "none.parquet", []), home)
    with pytest.raises(SearchError, match="title is empty in row 1"):
        index_of(write_corpus_of_type(tmp_path / "null.parquet", [("a", "b", "c"), ("a", None, "c")]), home)
    assert not home.exists()
    with pytest.raises(SearchError, match=r"long.parquet: the title in row 1 has more than 1000 characters"):
        index_of(write_corpus(tmp_path / "long.parquet", [("a", "b", "c"), ("b", "x" * 1001, "c")]), home)


def write_corpus_of_type(path: Path, rows: list[tuple[str, str | None, str]]) -> Path:
    pl.DataFrame(rows, schema=dict.fromkeys(("id", "title", "text"), pl.String), orient="row").write_parquet(
        path
    )
    return path


def test_a_damaged_index_is_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="no readable index"):
        TantivySearch(tmp_path)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(SearchError, match="no readable index"):
        TantivySearch(tmp_path)


def test_without_tantivy_the_message_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['tantivy'] = None\n"
        "from skillpress.environments.notebook_qa.search import open_search\n"
        f"open_search({str(tmp_path / 'a.parquet')!r}, {str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "the package tantivy is not installed here; pip install" in done.stderr


class Counting:
    """Records its requests, and fails once."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        self.asked.append(query)
        if self.fails:
            raise SearchError("no answer")
        return (Hit(query, "", float(top_k), ""),)

    def read(self, title: str) -> str | None:
        self.asked.append(title)
        return title or None


def test_what_was_answered_is_not_asked_again_until_it_is_forgotten() -> None:
    backend = Counting()
    cached = CachedSearch(backend, 2)
    for query in ("a", "b", "a", "c", "a", "b"):
        assert cached.search(query, 3) == (Hit(query, "", 3.0, ""),)
    assert backend.asked == ["a", "b", "c", "b"]
    assert cached.search("a", 4)[0].score == 4.0
    assert cached.read("") is None and cached.read("") is None
    assert backend.asked[-2:] == ["a", ""]


def test_what_is_remembered_is_bounded_in_bytes() -> None:
    backend = Counting()
    cached = CachedSearch(backend, 4096, most_bytes=100_000)
    for number in range(100):
        cached.search(f"{number}" + "x" * 5000, 3)
        cached.read(f"{number}" + "x" * 5000)
    cached.search("99" + "x" * 5000, 3)
    assert len(backend.asked) == 200, "the last ones are"
    cached.search("0" + "x" * 5000, 3)
    assert len(backend.asked) == 201, "the first ones are not"
    assert cached._searches.held_bytes < 100_000 and cached._pages.held_bytes < 100_000


def test_an_error_is_not_remembered() -> None:
    backend = Counting()
    cached = CachedSearch(backend, 2)
    backend.fails = True
    with pytest.raises(SearchError):
        cached.search("a", 1)
    backend.fails = False
    assert cached.search("a", 1)


def test_bare_questions_find_what_others_found(qa_data: Path, tmp_path: Path) -> None:
    """Published results for BM25 over these paragraphs: all gold paragraphs are in the top 10 for 78% of
    HotpotQA's questions and 44% of 2Wiki's."""
    search = open_search(qa_data / "paragraphs.parquet", tmp_path)
    questions = pl.read_parquet(qa_data / "questions.parquet").filter(pl.col("split") == "test")
    for dataset, reported in (("hotpotqa", 0.78), ("2wikimultihopqa", 0.44)):
        asked = questions.filter(pl.col("dataset") == dataset).select("question", "supporting_titles")
        found = [set(gold) <= {hit.title for hit in search.search(text, 10)} for text, gold in asked.rows()]
        assert sum(found) / len(found) == pytest.approx(reported, abs=0.05)
