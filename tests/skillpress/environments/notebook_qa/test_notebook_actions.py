"""Short actions name things on the desk; any other text is code."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.notebook_qa import desk as desks
from skillpress.environments.notebook_qa.actions import read_action, short_words
from skillpress.environments.notebook_qa.desk import MOST_CANDIDATES, MOST_TITLES, Desk, first_desk


def full_desk() -> Desk:
    desk = first_desk("Which came first, \"O'Hara's Wife\" or Miss Sloane?")
    desk = desks.searched(desk, [("Miss Sloane", "A 2016 film"), ("O'Hara's Wife", "A 1982 film")])
    desk = desks.read(desk, "Miss Sloane", "Miss Sloane is a 2016 film.")
    return desks.read(desk, "O'Hara's Wife", "O'Hara's Wife is a 1982 film.")


def test_every_action_that_is_offered_is_code_that_parses() -> None:
    desk = full_desk()
    offered = short_words(desk)
    assert len(set(offered)) == len(offered) > 10
    for words in offered:
        asked = read_action(words, desk)
        assert asked.invalid is None and asked.code != words
        ast.parse(asked.code)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("search  question", "search('Which came first, \"O\\'Hara\\'s Wife\" or Miss Sloane?')"),
        ("search entity 2", "search('Miss Sloane')"),
        ("read title 2", "print(read(\"O'Hara's Wife\"))"),
        ("note candidate 1", "notepad.facts.append('Miss Sloane')"),
        ("answer no", "submit_final_answer('no')"),
    ],
)
def test_short_words_stand_for_code(words: str, code: str) -> None:
    assert read_action(words, full_desk()).code == code


@pytest.mark.parametrize(
    "words", ["read title 3", "read title 0", "search entity 9", "read candidate 1", "answer title 1"]
)
def test_what_is_not_there_is_refused(words: str) -> None:
    assert read_action(words, full_desk()).invalid == "not_on_the_desk"


def test_nothing_can_be_compared_before_two_pages_were_read() -> None:
    assert read_action("compute latest", first_desk("Who?")).invalid == "not_on_the_desk"
    assert "compute latest" not in short_words(first_desk("Who?"))


@given(st.text())
def test_any_other_text_is_code_as_it_stands(text: str) -> None:
    asked = read_action(text, full_desk())
    assert (
        asked.code == text or asked.invalid is not None or text.split()[0] in ("search", "compute", "answer")
    )


@given(st.text(), st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=30))
def test_a_desk_is_made_of_any_text(question: str, pages: list[tuple[str, str]]) -> None:
    desk = desks.searched(first_desk(question), pages)
    for title, text in pages[:3]:
        desk = desks.read(desk, title, text)
    assert len(desk.answers) <= MOST_CANDIDATES
    read = [word for word in short_words(desk) if word.startswith("read ")]
    assert len(read) == min(MOST_TITLES, len(dict(pages)))
