"""The first sentences give levels beside the floor, and never call luck a gain or a loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.evaluation.statistics import Comparison, PairedTest, SuccessRate
from skillpress.pipeline.files import EXPLORER, START, TRAINED
from skillpress.pipeline.finished.effect import ADVICE, Effect, effect
from skillpress.pipeline.finished.report import verdict

Figures = tuple[float, float, float]
NOTHING = (0.01, -0.03, 0.05)
UNTOLD = "These tasks do not tell the trained policy from the random player"
LEVELS = {EXPLORER: (0.5, 0.336, 0.664), START: (0.125, 0.05, 0.281), TRAINED: (0.203, 0.099, 0.37)}


def rate(mean: float, low: float, high: float) -> SuccessRate:
    return SuccessRate(mean, None, (mean,), low, high, tasks=1024, episodes=2048)


def whole(difference: float, low: float, high: float) -> PairedTest:
    return PairedTest(30, difference, (difference,), low, high, 0.01)


def found(change: Figures = NOTHING, floor: Figures = NOTHING) -> Effect:
    rates = {name: rate(*figures) for name, figures in LEVELS.items()}
    return Effect(rates[START], rates[EXPLORER], whole(*floor), rates[TRAINED], whole(*change))


def test_the_first_sentence_has_the_levels_their_intervals_and_the_number_of_tasks() -> None:
    assert found().sentences.startswith(
        "Success of one training on 1,024 held-out tasks: 20.3% (9.9 to 37.0); "
        "start 12.5% (5.0 to 28.1), random player 50.0% (33.6 to 66.4). "
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            (-0.09, -0.145, -0.035),
            "Training changed success by -9.0 points (-14.5 to -3.5): it made the policy worse.",
        ),
        ((0.2, 0.15, 0.25), "Training changed success by +20.0 points (+15.0 to +25.0)."),
        (NOTHING, "Training changed success by +1.0 points (-3.0 to +5.0): these tasks tell no difference."),
        (
            (0.0, 0.0, 0.0),
            "Training changed success by +0.0 points (+0.0 to +0.0): these tasks tell no difference.",
        ),
    ],
)
def test_then_comes_the_change_its_interval_and_what_can_be_told(figures: Figures, said: str) -> None:
    effect = found(change=figures)
    assert f" {said} " in effect.sentences
    assert effect.worse == ("worse" in said)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            (-0.297, -0.441, -0.153),
            "The trained policy is below the random player, by 29.7 points (15.3 to 44.1).",
        ),
        ((0.2, 0.15, 0.25), "The trained policy is above the random player, by 20.0 points (15.0 to 25.0)."),
        (NOTHING, f"{UNTOLD}: +1.0 points (-3.0 to +5.0)."),
        ((0.0, 0.0, 0.0), f"{UNTOLD}: +0.0 points (+0.0 to +0.0)."),
    ],
)
def test_last_comes_the_random_player_and_below_it_is_said_in_words(figures: Figures, said: str) -> None:
    effect = found(floor=figures)
    assert effect.sentences.endswith(said)
    assert effect.below_random == ("below" in said)


def test_the_report_begins_with_the_same_and_says_what_the_brackets_hold() -> None:
    first = verdict(found())
    assert first.startswith(found().sentences) and "95% intervals" in first


def test_without_training_the_start_stands_beside_the_random_player() -> None:
    rates = {name: rate(*figures) for name, figures in LEVELS.items()}
    alone = Effect(rates[START], rates[EXPLORER], whole(-0.375, -0.512, -0.238))
    assert alone.sentences == (
        "Success on 1,024 held-out tasks, without training: start 12.5% (5.0 to 28.1), random player 50.0% "
        "(33.6 to 66.4). The start is below the random player, by 37.5 points (23.8 to 51.2)."
    )
    assert not alone.worse


def compared(figures: Figures) -> Comparison:
    early = PairedTest(3, 0.5, (0.5,), 0.4, 0.6, 0.0)
    return Comparison((early, whole(*figures)), tasks=64, first_episodes=64, second_episodes=64)


@pytest.mark.parametrize(
    ("change", "floor", "led"),
    [
        ((-0.09, -0.145, -0.035), (0.2, 0.15, 0.25), True),
        (NOTHING, (-0.3, -0.4, -0.2), True),
        ((0.2, 0.15, 0.25), NOTHING, False),
    ],
)
def test_whoever_lost_or_plays_below_random_is_led_to_the_page_that_says_what_to_try(
    change: Figures, floor: Figures, led: bool, repository: Path
) -> None:
    assert found(change, floor).advice == led
    assert (repository / ADVICE).is_file()


def test_the_last_test_decides_which_is_of_the_whole_episode_and_a_missing_one_is_named() -> None:
    class Summary:
        def __init__(self, figures: Figures) -> None:
            self.pass_at_1 = rate(*figures)

    summaries = {name: Summary(figures) for name, figures in LEVELS.items()}
    pairs = {
        "start against explorer": compared((-0.4, -0.5, -0.3)),
        "trained against explorer": compared((-0.3, -0.4, -0.2)),
        "trained against start": compared((0.1, 0.05, 0.15)),
    }
    one = effect(summaries, pairs, training_steps=5)  # type: ignore[arg-type]
    assert one.change is not None and (one.change.difference, one.floor.difference) == (0.1, -0.3)
    none = effect(summaries, pairs, training_steps=0)  # type: ignore[arg-type]
    assert none.change is None and none.floor.difference == -0.4
    del pairs["trained against explorer"]
    with pytest.raises(StorageError, match="trained against explorer; run the stage evaluate_policy"):
        effect(summaries, pairs, training_steps=5)  # type: ignore[arg-type]
