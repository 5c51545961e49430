"""A document that holds its episodes gives the same answers as the server."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest
from playwright.sync_api import Error

from skillpress.reports.viewer.embedded import embedded
from skillpress.reports.viewer.page_file import PAGE
from skillpress.reports.viewer.page_script import linked
from skillpress.reports.viewer.query import SORTS, QueryError, parse

FILTERS = [
    "", "policy=trained", "policy=start&policy=trained", "outcome=won", "outcome=stuck&outcome=timeout",
    "stratum=2 numbers", "stratum=", "reason=missing_action", "reason=", "source=1", "source=0&source=1",
    "version=30", "task=task-003", "task=ask-003", "group=start/run-0/task-001", "split=test",
    "won=1", "won=0",
    "min_steps=3", "max_steps=3", "min_steps=3&max_steps=5", "min_reward=0.5", "max_reward=-0.125",
    "min_cost=2", "max_cost=2", "min_version=1", "max_version=0", "phrase=27", "phrase=0&phrase=20",
    "text=helps towards 20", "text=HELPS", "text=SOLVED", "text=<script>", "text=nothing like it",
    "text=\u202e",
    "text=goal", "text=AAAA", "text=.*", "text=%", "policy=trained&outcome=won&min_steps=2&text=solved",
]  # fmt: skip


def items(query: str, **more: str) -> list[tuple[str, str]]:
    pairs = [pair.split("=", 1) for pair in query.split("&") if pair]
    return [*((name, value) for name, value in pairs), *more.items()]


@pytest.fixture(scope="module")
def asked(browser, catalogue):
    """``asked(items)``: the page's matches in the episodes that it holds."""
    page = browser.new_page()
    page.evaluate(f"() => {{ {linked(PAGE, 'query.js')}; globalThis.query = modules['query.js']; }}")
    page.evaluate(
        "episodes => { globalThis.episodes = episodes; }",
        embedded(catalogue, range(len(catalogue)))["episodes"],
    )
    yield lambda pairs: page.evaluate(
        "pairs => globalThis.query.answer(globalThis.episodes, new URLSearchParams(pairs))", pairs
    )
    page.close()


def answered(catalogue, pairs: list[tuple[str, str]]) -> dict:
    """The server's matches, after a complete search."""
    found = catalogue.page(parse(pairs))
    while not found.complete:
        found = catalogue.page(parse(pairs))
    return asdict(found) | {"rows": [asdict(row) for row in found.rows]}


@pytest.mark.parametrize("query", FILTERS)
def test_filters_find_the_same(catalogue, asked, query):
    pairs = items(query, limit="500")
    assert asked(pairs) == answered(catalogue, pairs)


@pytest.mark.parametrize("descending", ["0", "1"])
@pytest.mark.parametrize("column", SORTS)
def test_every_order_is_the_same(catalogue, asked, column, descending):
    pairs = items("", sort=column, descending=descending, limit="500")
    assert asked(pairs) == answered(catalogue, pairs)


def test_pages_of_filtered_and_sorted_episodes_are_the_same(catalogue, asked):
    dice = random.Random(0)
    for _ in range(60):
        pairs = items(
            dice.choice(FILTERS),
            policy="trained",
            sort=dice.choice(SORTS),
            descending=dice.choice("01"),
            offset=str(dice.randrange(20)),
            limit=str(dice.randrange(1, 30)),
        )
        assert asked(pairs) == answered(catalogue, pairs), pairs


@pytest.mark.parametrize(
    "query",
    ["colour=red", "min_steps=many", "sort=beauty", "min_steps=1&min_steps=2", "limit=few", "min_task=1"],
)
def test_what_the_one_refuses_the_other_refuses(asked, query):
    with pytest.raises(QueryError):
        parse(items(query))
    with pytest.raises(Error, match=r"QueryError|must be|there is no|is given twice"):
        asked(items(query))
