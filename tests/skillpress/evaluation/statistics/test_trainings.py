"""Intervals over trainings: the textbook's if there is one, and simulated errors of every test.

Simulated policies win a game with a probability on the logit scale: its difficulty, how well each method
suits it, the luck of each training, and of each training with each game. Both methods are the same by
construction, so a test that finds a difference errs, which it may in 5% of the cases.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_1samp

from skillpress.evaluation.statistics.bootstrap import bootstrap
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings

GAMES = 200
EPISODES = 3
EXPERIMENTS = 600
SPREAD = (0.05 * 0.95 / EXPERIMENTS) ** 0.5
"""Standard error of a simulated error rate of 5%."""
LUCKY = {"liking": 0.3, "luck": 0.2}
"""Trainings move success by about three points (their standard deviation)."""


def null_differences(
    seeds: int, shared: float, liking: float, luck: float, draws: int = EXPERIMENTS
) -> list[Scores]:
    """Differences per game of two methods that do not differ.

    Args:
        shared: share of its games that each seed has in common with all others; the rest are its own.
    """
    chance = np.random.default_rng([seeds, int(10 * shared), int(100 * liking), int(100 * luck)])
    common = int(shared * GAMES)
    columns = common + seeds * (GAMES - common)
    played = np.zeros((seeds, columns), dtype=bool)
    played[:, :common] = True
    for seed in range(seeds):
        played[seed, common + seed * (GAMES - common) : common + (seed + 1) * (GAMES - common)] = True
    row, column = np.nonzero(played)
    difficulty = 1 + 1.5 * chance.standard_normal((draws, 1, columns))[:, :, column]
    likings = liking * chance.standard_normal((draws, 2, columns))[:, :, column]
    lucks = luck * chance.standard_normal((draws, 2, seeds))[:, :, row]
    own = 0.3 * chance.standard_normal((draws, 2, len(row)))
    wins = chance.binomial(EPISODES, 1 / (1 + np.exp(-(difficulty + likings + lucks + own)))) / EPISODES
    values = np.full((draws, seeds, columns), np.nan)
    values[:, row, column] = (wins[:, 1] - wins[:, 0]).round(12)
    return [Scores(draw) for draw in values]


def error_rate(p_values) -> float:
    return float(np.mean([p < 0.05 for p in p_values]))


def pooled_p(scores: Scores) -> float:
    """The test that treats every game of every seed as an independent one."""
    values = scores.values[~np.isnan(scores.values)]
    return float(2 * norm.sf(abs(values.mean()) / (values.std(ddof=1) / len(values) ** 0.5)))


def hierarchical_p(scores: Scores, chance: np.random.Generator, resamples: int = 400) -> float:
    """Seeds are resampled, and the tasks of each; all seeds have the same number of their own tasks."""
    own = np.array([row[~np.isnan(row)] for row in scores.values])
    drawn = chance.integers(0, scores.seeds, (resamples, scores.seeds, 1))
    tasks = chance.integers(0, own.shape[1], (resamples, scores.seeds, own.shape[1]))
    means = own[drawn, tasks].mean(axis=(1, 2))
    tail = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return min(1.0, 2 * (tail + 1) / (resamples + 1))


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_methods_that_differ_by_luck_alone_are_told_apart_in_5_percent_and_not_more(seeds, shared):
    draws = null_differences(seeds, shared, **LUCKY)
    found = error_rate(over_trainings(draw).p for draw in draws)
    assert 0.02 < found < 0.05 + 3 * SPREAD
    assert error_rate(map(pooled_p, draws)) > 0.25  # what it replaces


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_two_seeds_err_no_more_often_and_show_little(shared):
    draws = null_differences(2, shared, **LUCKY)
    tested = [over_trainings(draw) for draw in draws]
    assert error_rate(test.p for test in tested) < 0.05 + 3 * SPREAD
    wider = np.median([test.high - test.low for test in tested])
    assert wider > 3 * np.median([np.ptp(bootstrap(draw.per_task(), 0)[:2]) for draw in draws[:10]])


def test_a_hierarchical_bootstrap_of_few_seeds_errs_too_often():
    """The reason why there is no interval."""
    chance = np.random.default_rng(0)
    draws = null_differences(2, 0.0, **LUCKY, draws=200)
    assert error_rate(hierarchical_p(draw, chance) for draw in draws) > 0.12


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_games_that_all_seeds_share_are_luck_that_more_seeds_do_not_remove(seeds):
    """Trainings without luck, methods that suit games: the t test over seeds alone takes them for skill."""
    draws = null_differences(seeds, 1.0, liking=1.0, luck=0.0)
    assert error_rate(over_trainings(draw).p for draw in draws) < 0.05 + 3 * SPREAD
    naive = error_rate(ttest_1samp(np.array([draw.seed_means() for draw in draws]), 0, axis=1).pvalue)
    assert naive > 0.05 + 3 * SPREAD


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_the_bootstrap_over_tasks_errs_in_5_percent_where_training_has_no_luck(shared, monkeypatch):
    """It finds one often if there is one: that is the meaning of "for these trained policies"."""
    monkeypatch.setattr("skillpress.evaluation.statistics.bootstrap.RESAMPLES", 200)
    for luck, low, high in ((0.0, 0.05 - 3 * SPREAD, 0.05 + 3 * SPREAD), (0.2, 0.15, 1.0)):
        draws = null_differences(3, shared, liking=0.3, luck=luck)
        assert low < error_rate(bootstrap(draw.per_task(), 0)[2] for draw in draws) < high


def test_seeds_with_tasks_of_their_own_are_the_t_test_over_seeds():
    (draw,) = null_differences(5, 0.0, **LUCKY, draws=1)
    expected = ttest_1samp(draw.seed_means(), 0)
    interval = expected.confidence_interval()
    found = over_trainings(draw)
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, *interval))
    assert (found.seeds, found.degrees) == (5, 4)


def test_games_of_all_seeds_have_the_variance_of_the_crossed_layout():
    """Mean squares by hand; the luck is so large that no component is cut at 0."""
    (draw,) = null_differences(4, 1.0, liking=0.8, luck=0.5, draws=1)
    x = draw.values
    seeds, games = x.shape
    of_seed, of_game = x.mean(axis=1), x.mean(axis=0)
    rest = x - of_seed[:, None] - of_game + x.mean()
    seed_square = games * of_seed.var(ddof=1)
    game_square = seeds * of_game.var(ddof=1)
    rest_square = (rest**2).sum() / ((seeds - 1) * (games - 1))
    variance = (seed_square + game_square - rest_square) / (seeds * games)
    assert min(seed_square, game_square) > rest_square
    degrees = (seeds - 1) * variance / (seed_square / (seeds * games))
    found = over_trainings(draw)
    assert found.degrees == pytest.approx(degrees)
    assert found.high - found.low == pytest.approx(2 * t.ppf(0.975, degrees) * variance**0.5)
    assert (found.high + found.low) / 2 == pytest.approx(x.mean())


def test_seeds_that_tie_are_not_taken_for_certain():
    """Two seeds won the same by chance; a t test over them would have no variance to divide by."""
    chance = np.random.default_rng(0)
    won = np.array([1.0] * 20 + [0.0] * 30)
    values = np.full((2, 100), np.nan)
    values[0, :50], values[1, 50:] = chance.permutation(won), chance.permutation(won)
    found = over_trainings(Scores(values))
    error = (2 * 0.4 * 0.6 / 49) ** 0.5 / 2  # of the mean of two means of 50 tasks
    assert found.degrees == 1
    assert found.high - found.low == pytest.approx(2 * t.ppf(0.975, 1) * error)


def test_one_seed_and_scores_that_do_not_vary_say_nothing():
    assert over_trainings(Scores(np.array([[1.0, 0.0, 0.5]]))) is None
    assert over_trainings(Scores(np.full((3, 7), 1 / 3))) is None
