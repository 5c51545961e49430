"""Texts become pieces that are safe to show; unsafe characters are named."""

from __future__ import annotations

import random

import pytest

from skillpress.reports.viewer.page_file import PAGE
from skillpress.reports.viewer.page_script import linked


@pytest.fixture(scope="module")
def page(browser):
    opened = browser.new_page()
    opened.evaluate(f"() => {{ {linked(PAGE, 'text.js')}; globalThis.text = modules['text.js']; }}")
    yield opened
    opened.close()


def pieces(page, text: str) -> list:
    return page.evaluate("text => globalThis.text.pieces(text)", text)


def names(page, text: str) -> list[str]:
    return [piece["mark"] for piece in pieces(page, text) if isinstance(piece, dict)]


@pytest.mark.parametrize(
    "text",
    [
        "", "plain", "tabs\tand\nlines", "<script>alert(1)</script>", "Ünïcödé 漢字 ❤️ 👍 שלום",
        "e\u0301 a\u0300\u0316\u0317\u0301",
    ],
)  # fmt: skip
def test_what_only_reads_is_one_piece_unchanged(page, text):
    assert pieces(page, text) == ([text] if text else [])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("\x1b[31mred\x1b[0m", ["ESC[31m", "ESC[0m"]),
        ("\x1b]8;;https://evil.example\x07click", ["ESC", "BEL"]),
        ("a\r\nb", ["CR"]),
        ("\x00\x08\x7f\x9b", ["NUL", "BS", "DEL", "U+009B"]),
        ("safe \u202e gnp.exe \u202c", ["RLO", "PDF"]),
        ("\u2066\u2069\u200e\u200f\u061c", ["LRI", "PDI", "LRM", "RLM", "ALM"]),
        ("zero\u200bwidth\u200d\ufeff\u2060\u00ad", ["ZWSP", "ZWJ", "BOM", "WJ", "SHY"]),
        ("\u2028\u2029", ["LS", "PS"]),
        ("\u3164\u115f", ["U+3164", "U+115F"]),
        ("\U000e0041\U000e0042", ["U+E0041", "U+E0042"]),
        ("\ufffe\ue000", ["U+FFFE", "U+E000"]),
        ("a" + "\u0300" * 6, ["U+0300", "U+0300"]),
    ],
)
def test_what_a_browser_would_obey_or_hide_is_named(page, text, named):
    assert names(page, text) == named


def test_half_of_a_pair_is_named(page):
    found = page.evaluate(r"globalThis.text.pieces('x\ud83dy\ude00')")
    assert [piece if isinstance(piece, str) else piece["mark"] for piece in found] == [
        "x",
        "U+D83D",
        "y",
        "U+DE00",
    ]


def test_no_character_is_lost_or_added(page):
    dice = random.Random(0)
    for _ in range(20):
        points = [
            dice.choice((0x1B, 0x202E, 0x41, 0x300, 0x1F600, dice.randrange(1, 0xD800))) for _ in range(200)
        ]
        text = "".join(map(chr, points))
        counted = page.evaluate(
            "text => globalThis.text.pieces(text)"
            ".map(piece => piece.mark ? piece.mark.replace(/^(U\\+[0-9A-F]+|[A-Z]+)/, 'x') : piece)"
            ".reduce((sum, piece) => sum + [...piece].length, 0)",
            text,
        )
        assert counted == len(text)


def test_a_megabyte_of_anything_is_taken_apart_without_a_pause_that_grows(page):
    for letter in ("A", "\u202e", "\u0300", "\x1b[31m"):
        assert page.evaluate(
            "letter => globalThis.text.pieces(letter.repeat(1_048_576 / letter.length)).length", letter
        )


def test_a_text_is_never_cut_within_a_character(page):
    cut = "[1, 2, 3].map(length => globalThis.text.clipped('a😀b', length))"
    assert page.evaluate(cut) == ["a", "a", "a😀"]


def test_titles_are_one_safe_line(page):
    assert page.evaluate("globalThis.text.plain('a\\n\\u202eb\\tc', 4)") == "a RLOb…"
