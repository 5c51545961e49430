"""Nothing is silent for long: a wait of seconds is said, with what is waited for."""

from __future__ import annotations

import pytest

from skillpress.core.waiting import waiting
from skillpress.pipeline import waits
from skillpress.pipeline.progress import StageProgress
from skillpress.pipeline.waits import FIRST_SECONDS, SECONDS, Waits


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock; the thread that looks at it sleeps, and the tests look themselves."""
    clock = [100.0]
    monkeypatch.setattr(waits.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(waits, "LOOK_SECONDS", 3600.0)
    return clock


def test_a_wait_is_said_after_seconds_and_again_as_long_as_it_lasts(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Waits("train_policy") as shown, waiting("importing torch"):
        for after in (FIRST_SECONDS - 1, FIRST_SECONDS, FIRST_SECONDS + SECONDS - 1, FIRST_SECONDS + SECONDS):
            shown.look(100.0 + after)
    assert capsys.readouterr().err.splitlines() == [
        "train_policy: importing torch (5 s so far)",
        "train_policy: importing torch (35 s so far)",
    ]


def test_who_does_not_wait_says_nothing_and_each_wait_has_its_own_clock(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Waits("train_policy") as shown:
        shown.look(1_000.0)
        with waiting("importing torch"):
            now[0] += 4
        with waiting("loading the policy"):
            shown.look(now[0] + 4)
    assert capsys.readouterr().err == ""


def test_a_bar_within_a_stage_does_not_repeat_what_the_stage_says(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    engine = waiting("waiting for the engine server")
    with Waits("evaluate_policy") as stage, StageProgress("evaluate_policy", 4, "episode"), engine:
        stage.look(now[0] + FIRST_SECONDS)
    assert capsys.readouterr().err == "evaluate_policy: waiting for the engine server (5 s so far)\n"
    with StageProgress("evaluate", 4), waiting("importing torch"):
        assert Waits._speaks is not None
        Waits._speaks.look(now[0] + FIRST_SECONDS)
    assert capsys.readouterr().err == "evaluate: importing torch (5 s so far)\n"


def test_a_bar_has_words_about_the_whole_run_by_what_is_left_of_its_own_work(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[float | None] = []

    def whole(rest: float | None) -> str:
        told.append(rest)
        return "stage 7 of 10"

    with StageProgress("train_policy", 20, "step", whole=whole) as bar:
        for count in range(1, 7):
            now[0] += 1.0
            bar(count, success=0.5)
    assert told[0] is None, "one count has no rate"
    assert told[1:] == pytest.approx([20 - count for count in range(2, 7)])
    assert "success=0.5, stage 7 of 10]" in capsys.readouterr().err
