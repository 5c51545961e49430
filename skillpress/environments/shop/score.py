"""WebShop's reward of a purchase (Yao et al. 2022, section 3).

    score = type · (|U_att ∩ Y_att| + |U_opt ∩ Y_opt| + 1[y_price ≤ u_price]) / (|U_att| + |U_opt| + 1)

U is what the instruction asks for, Y what was bought. ``type`` is less than 1 for another kind of product: 0
if the titles share no content word, 0.1 if less than a tenth of the wanted title's, 0.5 if at most a fifth
and neither query nor category agree. **These constants are from memory and were not checked.** The paper
compares the nouns of titles by a tagger; here all content words count. Nearly equal spellings of attributes
and options agree (difflib's ratio above 0.85); synonyms are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

from skillpress.environments.notebook_qa.answers import normalized
from skillpress.environments.notebook_qa.candidates import content_words
from skillpress.environments.shop.catalogue import Product, Wish

ALIKE = 0.85


def scored(wanted: Wish, target: Product, bought: Product, chosen: Mapping[str, str]) -> dict[str, float]:
    """``score``, and its parts ``type``, ``attributes``, ``options`` and ``price`` as shares.

    Args:
        target: the product that the instruction was written for.
        chosen: maps options to the values that were chosen.
    """
    attributes = sum(any(alike(each, other) for other in bought.attributes) for each in wanted.attributes)
    options = sum(any(alike(value, other) for other in chosen.values()) for value in wanted.options.values())
    price, kind = float(bought.price <= wanted.most), kind_of(target, bought)
    parts = len(wanted.attributes) + len(wanted.options) + 1
    return {
        "score": kind * (attributes + options + price) / parts,
        "type": kind,
        "attributes": attributes / len(wanted.attributes) if wanted.attributes else 1.0,
        "options": options / len(wanted.options) if wanted.options else 1.0,
        "price": price,
    }


def kind_of(target: Product, bought: Product) -> float:
    """How alike two products are in kind: 0, 0.1, 0.5 or 1."""
    if target.asin == bought.asin:
        return 1.0
    wanted = content_words(target.title)
    shared = len(wanted & content_words(bought.title)) / len(wanted) if wanted else 0.0
    if shared < 0.1:
        return 0.1 if shared else 0.0
    agree = _same(target.query, bought.query) or _same(target.category, bought.category)
    return 0.5 if shared <= 0.2 and not agree else 1.0


def alike(one: str, other: str) -> bool:
    """Whether two attributes or values differ at most in their spelling."""
    left, right = normalized(one), normalized(other)
    return left == right or SequenceMatcher(None, left, right, autojunk=False).ratio() > ALIKE


def _same(one: str, other: str) -> bool:
    return bool(one) and one == other
