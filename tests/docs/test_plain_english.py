"""The checker of wording finds its habits, leaves good sentences alone, and never lets a folder get worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs import plain_english
from docs.plain_english import MOST_WORDS, excess, findings, folder, lowered, main

PYTHON, MARKDOWN = Path("skillpress/core/seeds.py"), Path("docs/engines.md")


def habits(text: str, path: Path = MARKDOWN) -> list[str]:
    return [found.habit for found in findings(path, text)]


@pytest.mark.parametrize(
    ("sentence", "habit"),
    [
        ("Whoever reads the file must wait.", "hidden actor"),
        ("A server that nobody asks may sleep.", "hidden actor"),
        ("A summary is no step.", "negated noun"),
        ("The text is none of these when it is none.", "negated noun"),
        ("A prompt is made anew.", "rare word"),
        ("All tests but for the slow ones run.", "rare word"),
        ("The agent is told the answer.", "passive telling"),
        ("The reason stands in the record.", "standing"),
        ("It trains on what is left.", "what as a noun"),
        ("A page is refused, and a file does so, too.", "cut-off 'so'"),
        ("The seed is of the experiment.", "belonging"),
        (" ".join(["word"] * (MOST_WORDS + 1)) + ".", "long sentence"),
    ],
)
def test_a_habit_is_found_and_named(sentence: str, habit: str) -> None:
    assert habits(sentence) == [habit]


@pytest.mark.parametrize(
    "sentence",
    [
        "A machine takes part only if it reads the same bytes.",
        "There is no step without a prompt, and a summary is not a step.",
        "The answer is no longer than the limit, and is None without one.",
        "None of them is late, and each of them is one of the four.",
        "The user `nobody` runs it ([what is left](there.md#what-is-left)).",
        "Stand-ins are not used.",
        "It is so small that one process holds it.",
        " ".join(["word"] * MOST_WORDS) + ".",
    ],
)
def test_a_good_sentence_is_left_alone(sentence: str) -> None:
    assert habits(sentence) == []


@pytest.mark.parametrize("words", ["Of the whole episode.", "As many as fit.", "That it may take."])
def test_a_docstring_needs_a_noun_or_a_subject(words: str) -> None:
    assert habits(f'limit = 1\n"""{words}"""\n', PYTHON) == ["no subject"]
    assert habits(words) == [], "a line of Markdown may continue a sentence"


def test_in_python_docstrings_comments_and_errors_are_read_and_code_is_not() -> None:
    code = (
        '"""A seed.\n\n    nobody  an aligned list belongs to the text\n\n    >>> nobody = 1\n"""\n'
        'raise ValueError("a summary is no step")  # made anew\nnobody = "whoever reads this"\n'
    )
    found = [(each.line, each.habit) for each in findings(PYTHON, code)]
    assert found == [(3, "hidden actor"), (7, "negated noun"), (7, "rare word")]


def test_in_markdown_code_headings_and_generated_parts_are_not_read() -> None:
    page = (
        "# Made anew\n\n```\nanew\n```\n\n    anew\n\n> `anew`\n\n"
        "<!-- made: state -->\nMade anew.\n<!-- end -->\n\nMade anew.\n"
    )
    assert [each.line for each in findings(MARKDOWN, page)] == [15]


def test_a_sentence_over_several_lines_is_one_and_a_list_is_not() -> None:
    half = " ".join(["word"] * (MOST_WORDS // 2 + 1))
    assert habits(f"{half}\n{half}.") == ["long sentence"]
    assert habits(f"- {half}\n- {half}.") == []


def test_allowances_cover_two_levels_of_the_library_and_one_elsewhere() -> None:
    assert folder(Path("skillpress/training/loop/step.py")) == "skillpress/training"
    assert folder(Path("docs/build/api.py")) == "docs"
    assert folder(Path("README.md")) == "."


def test_a_folder_may_not_get_worse_and_its_allowance_may_only_shrink() -> None:
    allowed = {"docs": 3, "tasks": 2, "flows": 1}
    found = {"docs": 4, "tasks": 1, "benchmarks": 1}
    assert excess(found, allowed) == {"docs": 1, "benchmarks": 1}
    assert lowered(found, allowed) == {"docs": 3, "tasks": 1}


def test_the_command_fails_where_a_folder_is_over_its_allowance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("Made anew, and anew.\n")
    (tmp_path / "allowed.json").write_text(json.dumps({".": 2}))
    monkeypatch.setattr(plain_english, "ROOT", tmp_path)
    monkeypatch.setattr(plain_english, "ALLOWANCES", tmp_path / "allowed.json")
    monkeypatch.setattr(plain_english, "prose_files", lambda paths: [Path("page.md")])
    assert main([]) == 0
    (tmp_path / "page.md").write_text("Made anew, anew and anew.\n")
    assert main([]) == 1
    assert "page.md:1: rare word" in (said := capsys.readouterr().out) and "3 findings, 1 more" in said
    assert main(["--lower"]) == 0 and json.loads((tmp_path / "allowed.json").read_text()) == {".": 2}
