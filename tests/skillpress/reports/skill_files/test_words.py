"""Anti-unification over words, and the cleaning of texts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.reports.skill_files.choosing import overlapping
from skillpress.reports.skill_files.cores import with_cores
from skillpress.reports.skill_files.document import name_of
from skillpress.reports.skill_files.private import cleaned
from skillpress.reports.skill_files.words import common, fixed, words_of
from skillpress.skills.fit import fit

TEXTS = st.lists(st.text("ab -/.1", max_size=20), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["pytest a.py -q", "pytest tests/b.py::c -q"], "pytest <file> -q"),
        (["sed -i 's/a/b/' x.toml", "sed -i 's/c/d e/' x.toml"], "sed -i <text> x.toml"),
        (["git commit -m 'one two'", "git commit -m \"three\""], "git commit -m <text>"),
        (["head -n 5 a", "head -n 12 a"], "head -n <number> a"),
        (["ls", "ls -la"], "ls [<options>]"),
        (["cat <key>", "cat <key>"], "cat <key>"),
        ([], ""),
    ],
)  # fmt: skip
def test_what_all_texts_share_stays_and_the_rest_is_a_named_place(texts: list[str], form: str) -> None:
    assert common(texts) == form


@given(texts=TEXTS)
def test_every_word_that_stays_is_in_every_text(texts: list[str]) -> None:
    for text in texts:
        assert set(fixed(common(texts))) <= set(words_of(text))


@given(text=st.text(max_size=80))
def test_a_cleaned_text_is_clean(text: str) -> None:
    assert cleaned(cleaned(text)) == cleaned(text)


@pytest.mark.parametrize(
    "text",
    [
        "pytest tests/unit/test_parser.py::TestParser -q", "fix the failing test",
        "uv lock --upgrade-package numpy", "hatch version 3.0", "skill-of-several-hyphenated-words",
        "git checkout -b feature/very-long-name-of-a-branch", "docker run -p 8080:80 app",
        "npm install left-pad@1.3.0", "git reset HEAD~2", "reset the password form", "at 12:30:45",
    ],
)  # fmt: skip
def test_ordinary_words_stay(text: str) -> None:
    assert cleaned(text) == text


@given(phrase=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=6))
def test_a_name_fits_the_format_and_is_not_taken(phrase: list[str]) -> None:
    taken: set[str] = set()
    for _ in range(3):
        name = name_of(phrase, taken)
        assert 1 <= len(name) <= 64 and name not in taken and name.strip("-") == name and "--" not in name
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        taken.add(name)


def test_nested_and_interrupted_phrases_overlap_and_others_do_not() -> None:
    assert overlapping(("a", "b", "c"), ("a", "b"))
    assert overlapping(("a", "b", "c", "d"), ("a", "x", "b", "c"))
    assert not overlapping(("a", "b"), ("b", "c"))


def test_a_routine_with_many_followers_is_one_phrase_without_them() -> None:
    routine = ("a", "b", "c")
    corpus = [(*routine, end, *routine, end) for end in "xyz"] * 8
    learned = fit(corpus, tuple("abcxyz"), 4, "refined")
    extended = replace(
        learned,
        phrases=(*((skill,) for skill in "abcxyz"), *((*routine, end) for end in "xyz")),
        counts=(0,) * 6 + (16,) * 3,
    )
    assert with_cores(extended, corpus).learned_counts == {routine: 48}
    assert with_cores(with_cores(extended, corpus), corpus) == with_cores(extended, corpus)
