"""The shop's pages in WebShop's text mode: parts joined by [SEP], actions ``search[...]`` and ``click[...]``.

The search page takes a query. Its results, ten on a page and at most fifty, lead to products; a product's
page has options, its description, features and reviews, and ``buy now``, which ends the episode. It is won
with a score of 1, else lost as ``wrong_purchase``. An action that the page does not offer costs its step and
changes nothing. A product's options are forgotten when its page is left for the results.

``task.spec`` holds ``asin``, ``instruction``, ``attributes``, ``options`` and ``most`` (the highest price).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gymnasium.spaces import Space

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.candidates import content_words
from skillpress.environments.shop.catalogue import Product, Stock, catalogue_of
from skillpress.environments.shop.parameters import ShopParameters
from skillpress.environments.shop.score import scored
from skillpress.environments.shop.tasks import wanted_by
from skillpress.environments.text.spaces import AnyText

ON_A_PAGE, MOST_RESULTS = 10, 50
WRONG_PURCHASE = "wrong_purchase"
BACK, NEXT, PREVIOUS, BUY = "back to search", "next >", "< prev", "buy now"
THANKS, SCORE = "Thank you for your purchase!", "Your score"
"""The last page, from which the report's figure of the score is read."""
Inspection = Literal["description", "features", "reviews"]
Page = Literal["search", "results", "product", Inspection]
INSPECTED: tuple[Inspection, ...] = ("description", "features", "reviews")
_ACTION = re.compile(r"(search|click)\[(.*)\]", re.DOTALL | re.IGNORECASE)
_SHORT = re.compile(r"(open|choose) (\d{1,2})")
_BUTTONS: dict[str, str] = {
    "next": NEXT,
    "previous": PREVIOUS,
    "back": BACK,
    "buy": BUY,
    **dict(zip(INSPECTED, INSPECTED, strict=True)),
}
"""Maps short actions to the buttons that they click."""


@dataclass(frozen=True)
class ShopState:
    """What a rendering may show: the instruction, the page, and the choices that led to it."""

    instruction: str
    most: float
    """The highest price of the instruction."""
    steps: int = 0
    """Number of steps taken so far."""
    page: Page = "search"
    found: tuple[Product, ...] = ()
    """The results of the last search."""
    number: int = 1
    """The page of the results that is shown, counted from 1."""
    product: Product | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Maps options to their chosen values."""
    opened: tuple[str, ...] = ()
    """The asins of the products that were opened."""
    inspected: tuple[str, ...] = ()
    """The texts of the current product that were read."""

    @property
    def listed(self) -> tuple[Product, ...]:
        """The products of this page of the results."""
        return self.found[(self.number - 1) * ON_A_PAGE : self.number * ON_A_PAGE]

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """(option, value) of all values that can be chosen, in the order of the page."""
        options = self.product.options if self.product else {}
        return tuple((name, value) for name, values in options.items() for value in values)

    @property
    def query(self) -> str:
        """The query of the short action: the instruction without its price."""
        return self.instruction.rpartition(", and price lower")[0] or self.instruction


class Shop:
    """One instruction at a time."""

    action_space: Space[str] = AnyText(2000)
    observation_space: Space[str] = AnyText(1 << 20)

    def __init__(self, parameters: ShopParameters) -> None:
        self._max_steps = parameters.max_steps
        self._catalogue: Stock = catalogue_of(parameters)
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start at the search page."""
        self._wanted = wanted_by(task)
        self._state = ShopState(self._wanted.instruction, self._wanted.most)
        self._over = False
        return shown(self._state), self._info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Search or click, in WebShop's wording or by short actions (``open 3``, ``choose 2``, ``buy``)."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        state = replace(self._state, steps=self._state.steps + 1)
        said = read_action(action, state)
        following = None if said is None else self._after(state, *said)
        bought = said == ("click", BUY) and following is not None
        self._state = following or state
        truncated = not bought and state.steps >= self._max_steps
        self._over = bought or truncated
        invalid = None if following else "unreadable" if said is None else "not_on_the_page"
        info = self._info(None if said is None else f"{said[0]}[{said[1]}]", invalid, bought)
        seen = f"{THANKS} [SEP] {SCORE} [SEP] {info.measures['score']:.4f}" if bought else shown(self._state)
        return seen, bought, truncated, info

    def _after(self, state: ShopState, kind: str, text: str) -> ShopState | None:
        """The state after an action; None if the page does not offer it."""
        if kind == "search":
            if state.page != "search" or not text:
                return None
            found = self._catalogue.search(text, MOST_RESULTS)
            return replace(state, page="results", found=found, number=1)
        if text not in clickable(state):
            return None
        if text == BUY:
            return state
        if text == BACK:
            return replace(state, page="search", found=(), product=None, chosen={}, inspected=())
        for name in INSPECTED:
            if text == name:
                return replace(state, page=name, inspected=(*state.inspected, name))
        if text in (NEXT, PREVIOUS):
            return _turned(state, text)
        if state.page == "results":
            product = next(each for each in state.listed if each.asin.lower() == text)
            opened = (*state.opened, product.asin)
            return replace(state, page="product", product=product, chosen={}, inspected=(), opened=opened)
        option = next(option for option, value in state.values if value == text)
        return replace(state, chosen={**state.chosen, option: text})

    def _info(self, said: str | None = None, invalid: str | None = None, bought: bool = False) -> Info:
        state, measures = self._state, dict.fromkeys(ShopParameters.measures, 0.0)
        if bought:
            assert state.product is not None, "only a product can be bought"
            target = self._catalogue.products[self._wanted.asin]
            measures = scored(self._wanted, target, state.product, state.chosen)
        won = measures["score"] == 1.0
        clicks = tuple(f"click[{name}]" for name in clickable(state))
        asin = state.product.asin if state.product else ""
        chosen = sorted(state.chosen.items())
        return Info(
            won=won,
            lost=WRONG_PURCHASE if bought and not won else None,
            action=said,
            invalid=invalid,
            admissible=(f"search[{state.query}]",) if state.page == "search" else clicks,
            measures=measures if self._over else {},
            answer=asin if bought else None,
            state=state,
            state_key=f"{state.page} {state.number} {asin} {chosen} {[each.asin for each in state.listed]}",
        )


def clickable(state: ShopState) -> tuple[str, ...]:
    """Everything that can be clicked, in lower case and in the page's order."""
    if state.page == "search":
        return ()
    if state.page == "results":
        more = len(state.found) > state.number * ON_A_PAGE
        turns = (NEXT,) * more + (PREVIOUS,) * (state.number > 1)
        return (BACK, *turns, *(each.asin.lower() for each in state.listed))
    if state.page == "product":
        values = dict.fromkeys(value for _, value in state.values)
        return (BACK, PREVIOUS, *values, *INSPECTED, BUY)
    return (BACK, PREVIOUS)


def read_action(action: str, state: ShopState) -> tuple[str, str] | None:
    """(search or click, its text) of an action in either wording; None if it is neither."""
    text = " ".join(action.split())
    if match := _ACTION.fullmatch(text):
        kind = match[1].lower()
        return kind, match[2].strip() if kind == "search" else match[2].strip().lower()
    if text == "search instruction":
        return "search", state.query
    if text in _BUTTONS:
        return "click", _BUTTONS[text]
    match = _SHORT.fullmatch(text)
    if match is None:
        return None
    things = (
        [each.asin.lower() for each in state.listed] if match[1] == "open" else [v for _, v in state.values]
    )
    number = int(match[2])
    return ("click", things[number - 1]) if 1 <= number <= len(things) else None


def near(state: ShopState, text: str) -> int:
    """Number of different content words of the instruction in a text."""
    return len(content_words(state.query) & content_words(text))


def shown(state: ShopState) -> str:
    """The page as a text."""
    return " [SEP] ".join(("Instruction:", state.instruction, *_parts(state)))


def _turned(state: ShopState, text: str) -> ShopState:
    """The state after the next or previous page of results was opened."""
    if text == NEXT:
        return replace(state, number=state.number + 1)
    if state.page == "results":
        return replace(state, number=state.number - 1)
    if state.page == "product":
        return replace(state, page="results", product=None, chosen={}, inspected=())
    return replace(state, page="product")


def _parts(state: ShopState) -> Iterator[str]:
    if state.page == "search":
        yield "Search"
        return
    yield "Back to Search"
    if state.page == "results":
        yield f"Page {state.number} (Total results: {len(state.found)})"
        yield from (name.capitalize() for name in clickable(state) if name in (NEXT, PREVIOUS))
        for each in state.listed:
            yield from (each.asin, each.title, f"${each.price:.2f}")
        return
    product = state.product
    assert product is not None, "other pages are a product's"
    yield "< Prev"
    match state.page:
        case "description":
            yield product.description
        case "features":
            yield from product.features
        case "reviews":
            yield from product.reviews
        case _:
            for name, values in product.options.items():
                yield from (
                    name,
                    *(f"{value} (chosen)" if state.chosen.get(name) == value else value for value in values),
                )
            yield from (product.title, f"Price: ${product.price:.2f}", "Description", "Features", "Reviews")
            yield "Buy Now"
