"""Products and instructions in WebShop's JSON form, and the search over them.

A product has ``asin``, ``name``, ``full_description``, ``small_description`` (bullet points), ``pricing``
(``$9.99``, or ``$9.99$19.99``, whose first counts), ``customization_options`` (option to values), ``query``
and ``product_category``. ``items_ins_v2.json`` maps each asin to ``attributes``, ``instruction`` and
``instruction_attributes``; ``items_human_ins.json`` maps it to a list of these, with ``instruction_options``.
Keys that are not read may be missing or have any form. The published files were not available for comparison.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.errors import UserError
from skillpress.environments.notebook_qa.parameters import index_home
from skillpress.environments.notebook_qa.search import open_search
from skillpress.environments.shop.parameters import ShopParameters

LONGEST = 200
"""Maximum number of characters of a product's name in the index and on pages."""
_PRICE = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Product:
    """The shop's data about a product."""

    asin: str
    title: str
    price: float
    description: str = ""
    features: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps an option, such as a colour, to its values."""
    attributes: tuple[str, ...] = ()
    """Attributes that only the score uses; no page shows them."""
    query: str = ""
    category: str = ""


@dataclass(frozen=True)
class Wish:
    """What an instruction asks for."""

    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: Mapping[str, str]
    """Maps an option to the wanted value."""
    most: float
    """The highest price."""


@dataclass(frozen=True)
class Stock:
    """All products, the wishes for them, and the search."""

    products: Mapping[str, Product]
    wanted: Sequence[Wish]
    home: Path

    @cached_property
    def _search(self) -> Any:
        rows = [
            (each.asin, each.title[:LONGEST], " ".join((each.description, *each.features, *_values(each))))
            for each in self.products.values()
        ]
        named = hashlib.blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()
        self.home.mkdir(parents=True, exist_ok=True)
        file = self.home / f"products-{named}.parquet"
        frame = pl.DataFrame(rows, schema=["id", "title", "text"], orient="row")
        frame.write_parquet(file)
        return open_search(file, self.home)

    def search(self, query: str, most: int) -> tuple[Product, ...]:
        """The products that match best, by BM25 over all texts on their pages."""
        return tuple(self.products[found.id] for found in self._search.passages(query, most))


def catalogue_of(section: ShopParameters) -> Stock:
    """The section's catalogue.

    Raises:
        UserError: a file cannot be read, or is not WebShop's.
    """
    return _catalogue(section.products, section.instructions, section.attributes, section.catalogue,
                      index_home(section.indexes))  # fmt: skip


@cache
def _catalogue(products: str, instructions: str, attributes: str, size: int, home: Path) -> Stock:
    if not products:
        from skillpress.environments.shop.synthetic import synthetic

        return Stock(*synthetic(size), home)
    instructed = _json(instructions, dict)
    known = _json(attributes, dict) if attributes else instructed
    made = {each.asin: each for each in _products(products, known)}
    wishes = [
        wish
        for asin, rows in instructed.items()
        if asin in made
        for row in (rows if isinstance(rows, list) else [rows])
        if (wish := _wish(made[asin], row, instructions)) is not None
    ]
    if not wishes:
        raise UserError(
            f"environment.instructions: {instructions} has no instruction for a product of {products}"
        )
    return Stock(made, wishes, home)


def _products(file: str, attributes: Mapping[str, Any]) -> Iterable[Product]:
    for number, row in enumerate(_json(file, list)):
        try:
            asin, title, price = str(row["asin"]), str(row["name"]), price_of(row.get("pricing"))
            if price is None or not title.strip():
                continue  # WebShop sells nothing without a price
            yield Product(
                asin=asin,
                title=title[:LONGEST],
                price=price,
                description=str(row.get("full_description") or ""),
                features=tuple(map(str, row.get("small_description") or ())),
                options=_options(row.get("customization_options") or {}),
                attributes=_attributes(attributes.get(asin)),
                query=str(row.get("query") or "").strip().lower(),
                category=str(row.get("product_category") or "").strip(),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"environment.products: {file}: row {number} is not a product in WebShop's form "
                f"({type(error).__name__}: {error})"
            ) from error


def _options(found: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    options = {
        str(name).strip().lower(): tuple(
            dict.fromkeys(
                " ".join(str(value["value"]).replace("/", " | ").lower().split()) for value in values
            )
        )
        for name, values in found.items()
        if values
    }
    return {name: values for name, values in options.items() if values}


def _attributes(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found.get("attributes", ()))) if isinstance(found, dict) else ()


def _wish(product: Product, row: Any, file: str) -> Wish | None:
    """An instruction; None if it asks for no attribute, like some generated ones."""
    try:
        attributes, options = row.get("instruction_attributes") or (), row.get("instruction_options") or {}
        if not attributes or not row.get("instruction"):
            return None
        return Wish(
            asin=product.asin,
            instruction=priced(str(row["instruction"]).strip().rstrip("."), highest(product.price)),
            attributes=tuple(map(str, attributes)),
            options=_wanted_options(product, options),
            most=highest(product.price),
        )
    except (TypeError, AttributeError) as error:
        raise UserError(
            f"environment.instructions: {file}: {product.asin} has no instruction in WebShop's form ({error})"
        ) from error


def _wanted_options(product: Product, found: Any) -> dict[str, str]:
    """Maps options to values, given a mapping or a list of values."""
    if isinstance(found, dict):
        return {str(name).lower(): str(value).lower() for name, value in found.items()}
    values = [str(value).lower() for value in found]
    names = {value: name for name, each in product.options.items() for value in each}
    return {names.get(value, value): value for value in values}


def highest(price: float) -> float:
    """The highest price that an instruction allows: the second multiple of ten above the price."""
    return 10.0 * (int(price // 10) + 2)


def priced(instruction: str, most: float) -> str:
    """An instruction with its price."""
    return f"{instruction}, and price lower than {most:.2f} dollars"


def price_of(text: Any) -> float | None:
    """The first price in a text such as ``$1,009.99$1,200.00``; None if there is none."""
    found = _PRICE.search(str(text or ""))
    return float(found[0].replace(",", "")) if found else None


def file_bytes(file: Path) -> bytes:
    """The contents of a file that the section names."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from error


def _json(file: str, kind: type[Any]) -> Any:
    try:
        found = json.loads(file_bytes(Path(file).expanduser()))
    except ValueError as error:
        raise UserError(f"{file}: not JSON: {error}") from error
    if not isinstance(found, kind):
        raise UserError(
            f"{file}: holds a JSON {type(found).__name__}; WebShop's file holds a {kind.__name__}"
        )
    return found


def _values(product: Product) -> Iterable[str]:
    return (value for values in product.options.values() for value in values)
