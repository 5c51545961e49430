"""Formulas of the pages are written so that GitHub and the site both draw them, and all are drawn."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.build.formulas import FormulaError, mathml
from docs.build.markdown import SPAN, prose
from tests.support.pages import NAMES, PAGES

FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
UNDRAWN = re.compile(r"[αβγδηθλπρτφΔΣ𝓑𝒞𝒢𝓛𝒯√∑∈∪≤≥←⌈]|\w_\w+ [=−·] |\^\(")
"""Signs of a formula that was written out as text."""
OLD = frozenset({"CHANGELOG", "study", "README", "index", "papers"})
"""Pages whose sentences name a symbol now and then."""


def formulas(page: Path) -> list[str]:
    text = SPAN.sub("", prose(page.read_text()))
    return [block or inline for block, inline in FORMULA.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_formula_becomes_mathml_that_can_be_read(page: Path) -> None:
    for formula in formulas(page):
        drawn = ElementTree.fromstring(mathml(formula, "inline"))
        assert drawn.tag.endswith("math") and "".join(drawn.itertext()).strip(), formula


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in OLD], ids=lambda page: page.stem)
def test_no_formula_is_written_out_as_text(page: Path) -> None:
    left = FORMULA.sub("", SPAN.sub("", prose(page.read_text())))
    assert [line for line in left.splitlines() if UNDRAWN.search(line)] == []


def test_a_formula_that_would_be_shown_as_it_is_written_is_refused() -> None:
    with pytest.raises(FormulaError, match="does not know"):
        mathml(r"\nosuchcommand{x}", "inline")


def test_functions_bars_and_sums_are_spaced_as_in_print() -> None:
    drawn = mathml(r"\sum_j \lvert s \rvert \log x", "block")
    assert "<munder><mo>&#x02211;</mo><mi>j</mi></munder>" in drawn
    assert drawn.count('<mo lspace="0" rspace="0" stretchy="false">|</mo>') == 2
    assert '<mo lspace="0.17em" rspace="0.17em">log</mo><mi>x</mi>' in drawn
