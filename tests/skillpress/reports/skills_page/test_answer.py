"""A comparison of two sides is answered first: how often each succeeds, and later minus earlier."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from skillpress.cli.command import main
from skillpress.reports.skills_page.answer import SuccessRates, answer
from skillpress.reports.skills_page.comparison import newcombe
from tests.support.integrations.trace_records import chat


def asked(won: tuple[int, int], known: tuple[int, int], tasks: list[str] | None = None) -> SuccessRates:
    success = [place < won[side] for side in (0, 1) for place in range(known[side])]
    earlier = np.array([True] * known[0] + [False] * known[1])
    found = answer(success, earlier, ~earlier, tasks or [""] * len(success), ("old", "new"))
    assert found is not None
    return found


def test_each_side_has_its_rate_with_wilsons_interval() -> None:
    found = asked((149, 190), (500, 500))
    assert (found.earlier.share, found.later.share) == (0.298, 0.38)
    for side in (found.earlier, found.later):
        exact = stats.binomtest(side.won, side.known).proportion_ci(0.95, method="wilson")
        assert (side.low, side.high) == pytest.approx((exact.low, exact.high))


def test_the_difference_is_later_minus_earlier_with_newcombes_interval() -> None:
    found = asked((48, 56), (80, 70))
    assert found.difference == pytest.approx(0.2)
    assert (round(found.low, 4), round(found.high, 4)) == (0.0524, 0.3339), "Newcombe 1998, Table II"
    assert (found.low, found.high) == newcombe((0.8, 0.6), (70, 80), stats.norm.ppf(0.975))


@pytest.mark.parametrize(
    ("won", "verdict"), [((10, 40), "better"), ((40, 10), "worse"), ((24, 26), "not told apart")]
)
def test_the_verdict_is_of_the_later_side(won: tuple[int, int], verdict: str) -> None:
    assert asked(won, (50, 50)).verdict == verdict


def test_traces_of_one_task_count_as_dependent() -> None:
    tasks = [str(place // 10) for place in range(100)]
    alone, tied = asked((20, 30), (50, 50)), asked((20, 30), (50, 50), tasks)
    assert tied.low < alone.low and tied.later.low < alone.later.low and tied.tasks == 10


def test_traces_without_an_outcome_do_not_count_and_a_side_needs_one() -> None:
    earlier = np.array([True, True, False])
    found = answer([True, None, False], earlier, ~earlier, [""] * 3, ("a", "b"))
    assert found is not None and (found.earlier.known, found.later.known) == (1, 1)
    assert answer([True, True, None], earlier, ~earlier, [""] * 3, ("a", "b")) is None


def logged(path: Path, won: int, start: float | None = None, **more: object) -> Path:
    """Fifty traces, of which some are won."""
    path.write_text(
        "".join(
            json.dumps(
                {
                    **chat(solved=number < won, **more),
                    "created": None if start is None else start + number,
                }
            )
            + "\n"
            for number in range(50)
        )
    )
    return path


@pytest.fixture
def page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str, pl.DataFrame]]:
    def run(*options: object) -> tuple[str, str, pl.DataFrame]:
        out = tmp_path / "out"
        given = [*map(str, options), "--success", "solved", "--output", str(out)]
        assert main(["skills", *given]) == 0
        first = capsys.readouterr().out.splitlines()[0]
        return first, (out / "skills.html").read_text(), pl.read_csv(out / "contrasts.csv")

    return run


def test_two_logs_are_answered_by_their_own_names(tmp_path: Path, page) -> None:
    old, new = logged(tmp_path / "old.jsonl", 10), logged(tmp_path / "new.jsonl", 40)
    first, html, contrasts = page(old, "--compare", new)
    assert first == (
        "success: old.jsonl 20.0% (11.2 to 33.0, 10 of 50), new.jsonl 80.0% (67.0 to 88.8, 40 of 50); "
        "new.jsonl - old.jsonl: +60.0 points (+41.6 to +72.4), better"
    )
    assert html.index('id="answer"') < html.index('id="routines"')
    assert "<bdi>new.jsonl</bdi> is better than <bdi>old.jsonl</bdi>" in html
    assert '<p class="answer first">' in html, "green for better"
    assert "new.jsonl - old.jsonl" in contrasts["compared"].to_list()


def test_worse_is_not_green(tmp_path: Path, page) -> None:
    first, html, _ = page(logged(tmp_path / "old", 40), "--compare", logged(tmp_path / "new", 10))
    assert first.endswith("worse") and '<p class="answer second">' in html


def test_the_later_side_is_told_by_time_where_the_log_has_it(tmp_path: Path, page) -> None:
    new, old = logged(tmp_path / "new", 40, 1000.0), logged(tmp_path / "old", 10, 1.0)
    assert "new - old: +60.0 points" in page(new, "--compare", old)[0]
    assert "new - old: +60.0 points" in page(old, "--compare", new)[0]


def test_versions_are_compared_in_the_order_in_which_they_are_named(tmp_path: Path, page) -> None:
    log = tmp_path / "log"
    log.write_text(
        logged(tmp_path / "a", 10, v="1.0").read_text() + logged(tmp_path / "b", 40, v="1.1").read_text()
    )
    first, html, _ = page(log, "--version", "v", "--between", "1.0", "1.1")
    assert "1.1 - 1.0: +60.0 points" in first and "Later − earlier" in html
    assert "1.0 - 1.1: -60.0 points" in page(log, "--version", "v", "--between", "1.1", "1.0")[0]
    assert page(log, "--version", "v")[0].startswith("read: "), "nobody asked for a comparison"


def test_more_of_a_phrase_is_neither_better_nor_worse(tmp_path: Path, page) -> None:
    longer = chat()["messages"]
    old = logged(tmp_path / "old", 10)
    new = logged(tmp_path / "new", 40, messages=longer[:1] + longer[4:])
    _, html, _ = page(old, "--compare", new)
    versions = html[html.index('<section id="versions">') : html.index('<section id="time">')]
    assert re.findall(r'<tr class="(first|second)"', versions) == []


def test_logs_of_one_name_are_told_apart_by_their_folders(tmp_path: Path, page) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    old, new = logged(tmp_path / "a" / "log", 10), logged(tmp_path / "b" / "log", 40)
    assert f"{new} - {old}: +60.0 points" in page(old, "--compare", new)[0]


def test_without_outcomes_the_first_line_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = logged(tmp_path / "old", 10), logged(tmp_path / "new", 40)
    for path in (old, new):
        path.write_text(path.read_text().replace('"solved"', '"x"'))
    assert main(["skills", str(old), "--compare", str(new), "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("success: old and new cannot be compared, because one has no")
    assert main(["skills", str(old), "--between", "small", "small"]) == 2
    assert "--between: 'small' is named twice" in capsys.readouterr().err
