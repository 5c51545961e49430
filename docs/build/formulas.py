"""Formulas of the site as MathML, which browsers draw themselves: no script, no font, nothing is fetched.

A page writes ``$...$`` within a sentence, and ``$$`` above and below a formula by itself, as GitHub reads
them.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

BETTER = (
    (re.compile(r"<mi>(log|ln|exp)</mi>"), r'<mo lspace="0.17em" rspace="0.17em">\1</mo>'),
    (re.compile(r"<mo>&#x0007C;</mo>"), '<mo lspace="0" rspace="0" stretchy="false">|</mo>'),
    (re.compile(r"<msub>(<mo>&#x02211;</mo><mi>\w</mi>)</msub>"), r"<munder>\1</munder>"),
)
"""What is changed: space around functions, none inside of bars, what is summed over below the sum."""


class FormulaError(SphinxError):
    """A formula has what would be shown as it is written."""


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls: ``html_math_renderer = "mathml"`` chooses these."""
    app.add_html_math_renderer("mathml", (within_a_sentence, None), (by_itself, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def within_a_sentence(translator: Any, node: nodes.math) -> None:
    """Write the formula of a sentence."""
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def by_itself(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a separate line."""
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def mathml(formula: str, display: str) -> str:
    """A formula in LaTeX as MathML.

    Raises:
        FormulaError: it has a command that latex2mathml does not know.
    """
    converted = convert(formula, display=display)
    if "\\" in converted:
        raise FormulaError(f"{formula}: has a command that latex2mathml does not know")
    for written, drawn in BETTER:
        converted = written.sub(drawn, converted)
    return converted
