"""The shop in words.

``text``, for pretrained models, shows the page as WebShop does. ``compact``, for a policy made from scratch,
has no words for products. It shows how many content words of the instruction each title has, whether the
price fits, and which values of options the instruction names.

    results 1 1 new n5 fits 2 seen n2 over
    product n4 fits 1 asked chosen 2 plain open 3 asked open features
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.notebook_qa.answers import normalized
from skillpress.environments.shop.catalogue import Product
from skillpress.environments.shop.environment import INSPECTED, ON_A_PAGE, ShopState, near
from skillpress.environments.text.prompts import GameRendering, last_turns, own_state
from skillpress.environments.text.words import ended_vocabulary

MOST_VALUES = 16
"""Number of values of options that are shown."""
MOST_NEAR = 9
ACTION_WORDS = 2
OWN = """\
You shop for somebody. Actions: search[keywords] on the search page; click[text] on anything that a page \
offers: a product's code, an option's value, Description, Features, Reviews, < Prev, Next >, Back to Search, \
Buy Now. Find the product that the instruction describes, choose the options that it names, and buy it. Its \
attributes, options and price count."""
_MARKS = ("new", "seen", "fits", "over", "asked", "plain", "chosen", "open", "nothing", "did", ";")
_VERBS = ("choose", "instruction", "next", "previous", "back", "buy")
_PAGES = ("search", "results", "product", *INSPECTED)


class TextRendering(GameRendering):
    """The usual prompt of text games."""

    thought = "I take the next step towards the right product."


@dataclass(frozen=True)
class CompactRendering:
    """The prompt described in the module's docstring."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most :func:`vocabulary`'s ``state_words``."""
        turns = last_turns(state, self.history)
        known = frozenset(_words())
        did = [word for turn in turns for word in (*turn.action.split()[:ACTION_WORDS], ";")]
        return " ".join((*_page(own_state(state, ShopState)), "did", *(w for w in did if w in known)))

    def continuation(self, state: AgentState) -> str:
        """The page alone."""
        return " ".join(_page(own_state(state, ShopState)))

    def response(self, action: str, info: Info) -> str:
        """The short action itself."""
        return action


def vocabulary(history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    page = 2 + max(4 * ON_A_PAGE, 2 + 3 * MOST_VALUES + len(INSPECTED))
    return ended_vocabulary(_words(), page + 1 + history * (ACTION_WORDS + 1), page)


def _page(state: ShopState) -> Iterator[str]:
    yield state.page
    if state.page == "results":
        yield str(state.number)
        for number, each in enumerate(state.listed, 1):
            yield from (str(number), "seen" if each.asin in state.opened else "new", *_evidence(state, each))
        if not state.listed:
            yield "nothing"
    elif state.product is not None:
        yield from _evidence(state, state.product)
        asked = f" {normalized(state.query)} "
        for number, (name, value) in enumerate(state.values[:MOST_VALUES], 1):
            yield str(number)
            yield "asked" if f" {normalized(value)} " in asked else "plain"
            yield "chosen" if state.chosen.get(name) == value else "open"
        yield from (name for name in INSPECTED if name in state.inspected)


def _evidence(state: ShopState, product: Product) -> tuple[str, str]:
    """How many words of the instruction occur in the texts that were read, and whether the price fits."""
    told = [product.title]
    if product is state.product:
        told += [product.description] * ("description" in state.inspected)
        told += product.features * ("features" in state.inspected)
    return (
        f"n{min(near(state, ' '.join(told)), MOST_NEAR)}",
        "fits" if product.price <= state.most else "over",
    )


def _words() -> tuple[str, ...]:
    numbers = map(str, range(1, max(MOST_VALUES, ON_A_PAGE) + 1))
    return (*numbers, *(f"n{count}" for count in range(MOST_NEAR + 1)), *_PAGES, *_MARKS, *_VERBS)
