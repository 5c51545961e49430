"""One sentence gives training's effect on success; it never calls luck a gain or a loss."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from skillpress.measure.evaluation import Comparison, PairedTest
from skillpress.pipeline.finished.results import ADVICE, effect, effect_line


def compared(difference: float, low: float, high: float) -> dict[str, Comparison]:
    """Paired tests; the last one, of the whole episode, has these values."""
    early = PairedTest(3, 0.5, (0.5,), 0.4, 0.6, 0.0)
    whole = PairedTest(30, difference, (difference,), low, high, 0.01)
    tests = Comparison((early, whole), tasks=64, first_episodes=64, second_episodes=64)
    return {"trained against start": tests, "start against explorer": tests}


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            (-0.09, -0.145, -0.035),
            "training changed success by -9.0 points (-14.5 to -3.5): it made the policy worse",
        ),
        ((0.2, 0.15, 0.25), "training changed success by +20.0 points (+15.0 to +25.0)"),
        (
            (0.01, -0.03, 0.05),
            "training changed success by +1.0 points (-3.0 to +5.0): these tasks tell no difference",
        ),
        (
            (0.0, 0.0, 0.0),
            "training changed success by +0.0 points (+0.0 to +0.0): these tasks tell no difference",
        ),
    ],
)
def test_the_sentence_has_the_difference_its_interval_and_what_can_be_told(
    figures: tuple[float, float, float], said: str
) -> None:
    found = effect(compared(*figures), training_steps=5)
    assert found is not None and found.sentence == said
    assert found.worse == ("worse" in said)


def test_a_console_is_led_to_the_page_that_says_what_to_try_and_the_page_is_there(
    tmp_path: Path, repository: Path
) -> None:
    for figures, led in (((-0.09, -0.145, -0.035), True), ((0.2, 0.15, 0.25), False)):
        comparisons = {name: asdict(each) for name, each in compared(*figures).items()}
        evaluation = {"checkpoint": {}, "policies": {}, "comparisons": comparisons}
        (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
        line = effect_line(tmp_path, training_steps=5)
        assert line is not None and line.endswith(f"; {ADVICE} says what to try") == led
    assert (repository / ADVICE).is_file()


def test_where_nothing_was_trained_nothing_is_said() -> None:
    assert effect(compared(0.0, 0.0, 0.0), training_steps=0) is None
    assert effect({}, training_steps=5) is None
