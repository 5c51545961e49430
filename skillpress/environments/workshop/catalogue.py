"""The pieces and orders that training has, and those that it lacks. Pieces and orders are paired evenly.
Among the first n pairs, whatever n is, the counts of any two pieces differ by at most one; so do those of two
orders if n is a multiple of both numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import lcm
from typing import TypeVar

from skillpress.core.seeds import generator
from skillpress.environments.workshop.actions import ATTRIBUTES, SUBGOALS
from skillpress.environments.workshop.parameters import WorkshopParameters

Piece = tuple[str, ...]
"""A colour, a wood and a mark."""
Order = tuple[str, ...]
"""Sub-goals, in the order in which they are to be done."""
Pair = tuple[Piece, Order]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Catalogue:
    """All pieces and orders of an experiment, each list in drawn order."""

    pieces: tuple[Piece, ...]
    """The pieces of training; every attribute word is in one of them."""
    orders: tuple[Order, ...]
    """The orders of training; every sub-goal is in one of them."""
    new_pieces: tuple[Piece, ...]
    """All other pieces."""
    new_orders: tuple[Order, ...]
    """All other orders with the same number of sub-goals."""
    longer_orders: tuple[Order, ...]
    """All orders with one more sub-goal."""


def draw_catalogue(section: WorkshopParameters, seed: int) -> Catalogue:
    """The catalogue of an experiment with this seed."""
    first_pieces = list(zip(*(_shuffled(words, seed, words[0]) for words in ATTRIBUTES), strict=True))
    pieces = _first_then_others(first_pieces, list(product(*ATTRIBUTES)), section.pieces, seed)
    orders = _first_then_others(
        _all_subgoals_once(section.subgoals, seed),
        list(permutations(SUBGOALS, section.subgoals)),
        section.orders,
        seed,
    )
    longer = list(permutations(SUBGOALS, section.subgoals + 1))
    return Catalogue(
        pieces=tuple(_shuffled(pieces[: section.pieces], seed, "pieces")),
        orders=tuple(_shuffled(orders[: section.orders], seed, "orders")),
        new_pieces=tuple(pieces[section.pieces :]),
        new_orders=tuple(orders[section.orders :]),
        longer_orders=tuple(_shuffled(longer, seed, "longer")),
    )


def pairs(pieces: Sequence[Piece], orders: Sequence[Order]) -> Iterator[Pair]:
    """Every pair once. Both lists are cycled through in step; when both end together, the list of orders
    skips one.
    """
    if not pieces or not orders:
        return
    both = lcm(len(pieces), len(orders))
    for number in range(len(pieces) * len(orders)):
        yield pieces[number % len(pieces)], orders[(number + number // both) % len(orders)]


def _all_subgoals_once(subgoals: int, seed: int) -> list[Order]:
    """As few orders as possible that contain every sub-goal; the last one repeats some if they do not divide
    evenly.
    """
    drawn = _shuffled(SUBGOALS, seed, "cover")
    wrapped = drawn + drawn[:subgoals]
    return [tuple(wrapped[start : start + subgoals]) for start in range(0, len(drawn), subgoals)]


def _first_then_others(first: list[Item], every: list[Item], wanted: int, seed: int) -> list[Item]:
    """All items in drawn order, with these at the beginning."""
    assert len(first) <= wanted, "the section refuses fewer"
    begun = set(first)
    return first + _shuffled([item for item in every if item not in begun], seed, "others")


def _shuffled(items: Sequence[Item], seed: int, place: str) -> list[Item]:
    draws = generator(seed, "workshop catalogue", place)
    return [items[number] for number in draws.permutation(len(items)).tolist()]
