"""The answers that a page offers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.notebook_qa.answers import normalized
from skillpress.environments.notebook_qa.candidates import LONGEST_CANDIDATE, candidates, ranked

TEXT = (
    "Shirley Temple Black (April 23, 1928 – February 10, 2014) was an American actress. She played Corliss in"
    ' "Kiss and Tell" and was named Chief of Protocol of the United States. It seats 3,677 people.'
)


def offered(question: str = "What position did the actress hold?") -> dict[str, str]:
    return {found.text: found.kind for found in candidates(question, "Shirley Temple (actress)", TEXT)}


def test_names_dates_numbers_and_quotations_are_offered_and_the_title_without_its_brackets() -> None:
    found = offered()
    assert found["April 23, 1928"] == "date" and found["Kiss and Tell"] == "quoted"
    assert found["3,677"] == "number" and found["Chief of Protocol of the United States"] == "name"
    assert next(iter(found)) == "Shirley Temple" and found["Shirley Temple"] == "title"


def test_what_stands_beside_the_questions_words_comes_first_and_what_it_says_itself_last() -> None:
    found = ranked(candidates("Who directed Night Orchard in Ravenna?", "Night Orchard", (
        "The year was 1951. Years passed before anyone in the whole of the long valley had seen it. "
        "It was directed by Mira Tal near Ravenna."
    )))  # fmt: skip
    texts = [candidate.text for candidate in found]
    assert texts[:2] == ["Night Orchard", "Mira Tal"]
    assert texts.index("Ravenna") > texts.index("1951")


@given(st.text(), st.text(), st.text())
def test_candidates_of_any_text_are_short_and_different(question: str, page: str, text: str) -> None:
    found = candidates(question, page, text)
    keys = [normalized(candidate.text) for candidate in found]
    assert len(set(keys)) == len(keys) and all(keys)
    assert all(len(candidate.text) <= LONGEST_CANDIDATE for candidate in found)
    assert {normalized(candidate.text) for candidate in ranked(found)} == set(keys)
