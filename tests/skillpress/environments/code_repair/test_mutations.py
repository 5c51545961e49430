"""The list of changes: the rules' changes, and that each gives a program with one place changed."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillpress.environments.code_repair.mutations import KINDS, MOST_CHANGES, PLACES, changes, repair, shape
from skillpress.environments.code_repair.programs import Program

SOURCE = '''\
def f(xs, n):
    """Ünïcode before what is changed."""
    total = 0
    for i in range(len(xs)):
        if xs[i] < n and not n == 0:
            total += min(xs[i], n)
    while total % 2 == 1:
        total -= 1
    return total + 1
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("xs[i] < n", "xs[i] <= n"),
        ("xs[i] < n", "xs[i] > n"),
        ("n == 0", "n != 0"),
        ("< n and not", "< n or not"),
        ("not n == 0", "n == 0"),
        ("range(len(xs))", "range(len(xs) - 1)"),
        ("xs[i] < n", "xs[i + 1] < n"),
        ("total += min", "total -= min"),
        ("min(xs[i], n)", "max(xs[i], n)"),
        ("min(xs[i], n)", "min(n, xs[i])"),
        ("total % 2", "total // 2"),
        ("== 1:", "== 2:"),
        ("return total + 1", "return total"),
        ("return total", "return i"),
    ],
)
def test_a_rule_knows_this_change(before: str, after: str) -> None:
    wanted = SOURCE.replace(before, after)
    assert wanted in [change.apply(SOURCE) for change in changes(SOURCE)]


def test_each_change_is_a_program_that_differs_in_one_place() -> None:
    found = changes(SOURCE)
    results = [change.apply(SOURCE) for change in found]
    assert len(set(results)) == len(results) <= MOST_CHANGES and SOURCE not in results
    for change, result in zip(found, results, strict=True):
        ast.parse(result)
        assert change.kind in KINDS and change.place in PLACES
        assert SOURCE.splitlines()[change.line - 1] != result.splitlines()[change.line - 1]


def test_a_bug_that_a_change_made_is_repaired_by_another() -> None:
    bug = SOURCE.replace("xs[i] < n", "xs[i] >= n").replace("Ünïcode", "Otherwise said")
    found = repair(bug, SOURCE.replace(">=", "<"))
    assert found is None, "two operators that no rule takes for each other"
    bug = SOURCE.replace("xs[i] < n", "xs[i] <= n").replace("Ünïcode", "Otherwise said")
    found = repair(bug, SOURCE)
    assert found is not None and str(found) == "line 5: <= -> <"


def test_shapes_are_equal_where_only_the_layout_differs() -> None:
    assert shape("def f(x):\n    '''Says.'''\n    return x+1\n'Text.'") == shape(
        "def f(x):\n\n    return x + 1  # one"
    )
    assert shape("def f(x): return x") != shape("def f(y): return y")


def test_threads_may_list_changes_at_the_same_time() -> None:
    """CPython 3.11 raises SystemError if two threads build trees at the same time."""
    sources = [SOURCE.replace("total", f"total{number}") for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(changes, sources))
    assert {len(each) for each in found} == {len(changes(SOURCE))}


def test_a_text_that_is_no_program_has_no_changes() -> None:
    with pytest.raises(SyntaxError):
        changes("def f(")


def test_how_many_bugs_of_the_data_sets_the_list_repairs(programs: dict[str, Program]) -> None:
    listed = [p.source for p in programs.values() if repair(p.faulty, p.correct)]
    assert (listed.count("quixbugs"), listed.count("humanevalfix")) == (11, 54), "docs/code_repair.md says so"
