"""The record of false alarms: its page, its rates, and the cases that are drawn."""

from __future__ import annotations

import numpy as np

from benchmarks.trial_false_alarms import (
    PAGE,
    RESULT,
    alarms,
    deterministic,
    identical,
    page_of,
    played,
)
from skillpress.core.storage import read_json
from skillpress.evaluation.statistics.sign_flips import ERROR


def test_the_page_has_the_table_of_the_record() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_of(read_json(RESULT), text) == text


def test_no_case_of_the_record_has_more_false_alarms_than_is_stated() -> None:
    record = read_json(RESULT)
    most = ERROR + 3 * np.sqrt(ERROR * (1 - ERROR) / record["draws"])
    agents = ("noisy", "deterministic", "identical", "countdown")
    shares = [case["trial"] for agent in agents for row in record[agent].values() for case in row.values()]
    assert len(shares) > 80 and max(shares) <= most


def test_a_test_of_means_takes_rollouts_that_end_alike_for_evidence() -> None:
    found = alarms(deterministic, 50, 8, 200, "test")
    assert found["means"] > 0.15 and found["trial"] <= 0.1
    assert set(alarms(identical, 50, 8, 20, "test").values()) == {0.0}


def test_real_episodes_are_drawn_without_replacement() -> None:
    won = np.arange(12).reshape(3, 4) % 2 == 0
    one, other = played(won, np.random.default_rng(0), 3, 2)
    assert (one + other).tolist() == [2, 2, 2]
