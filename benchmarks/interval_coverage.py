"""How often do 95% intervals over few tasks cover the truth? Simulated policies with a known truth.

    python -m benchmarks.interval_coverage [--draws 2000] [--result FILE]

A simulated policy wins a game with a probability whose logit has four parts: how easy the game is, how well
the method suits it, the luck of a training, and that of the training with the game. A result is the share of
``--draws`` experiments whose interval covers the mean over all games and trainings, by the number of games:

- ``level_over_trainings``: a method's success by several trainings that play the same games;
- ``difference_over_trainings``: two methods that differ by luck alone; one minus the share is the error of
  the test;
- ``difference_over_tasks``: two trained policies, equal or one better, with one or three episodes per game;
- ``share_of_steps``, ``mean_of_episodes``: ratios of sums over games, such as the share of invalid steps;
- ``success_rate``: Wilson's interval of one run with one episode of each game.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillpress.core.intervals import clustered_mean, clustered_share, wilson
from skillpress.core.seeds import derive, generator
from skillpress.core.storage import write_json
from skillpress.evaluation.statistics.bootstrap import over_tasks
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings

RESULT = Path(__file__).parent / "results" / "interval_coverage.json"
GAMES = (5, 10, 20, 50)
EASE = {"67% won": 1.0, "86% won": 2.5, "95% won": 4.0}
"""The mean logit of a game."""
EASIER, LIKING, LUCK, OWN = 1.5, 0.3, 0.2, 0.3
"""Deviations of the logit's parts, in the order of the docstring."""
EPISODES = 3
"""How often a policy plays each game when trainings are compared."""
Ends = tuple[float, float] | None


def wins(rng: np.random.Generator, ease: float, policies: int, seeds: int, games: int) -> NDArray[np.float64]:
    """The probability of a win by policy, seed and game."""
    logit = ease + EASIER * rng.standard_normal((1, 1, games))
    logit = logit + LIKING * rng.standard_normal((policies, 1, games))
    logit = logit + LUCK * rng.standard_normal((policies, seeds, 1))
    return sigmoid(logit + OWN * rng.standard_normal((policies, seeds, games)))


def sigmoid(logit: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of a logit."""
    return np.asarray(1 / (1 + np.exp(-logit)))


def truth(ease: float) -> float:
    """The mean probability of a win over games, methods and trainings, by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    deviation = np.sqrt(EASIER**2 + LIKING**2 + LUCK**2 + OWN**2)
    return float(sigmoid(ease + deviation * nodes) @ weights / weights.sum())


def level(rng: np.random.Generator, games: int, ease: float, seeds: int) -> Ends:
    """The interval of a method's success in one experiment."""
    won = rng.binomial(EPISODES, wins(rng, ease, 1, seeds, games)[0])
    found = over_trainings(Scores(won / EPISODES), shares=True)
    return (found.low, found.high) if found else None


def difference(rng: np.random.Generator, games: int, ease: float, seeds: int) -> Ends:
    """The same for the difference between two methods."""
    one, other = rng.binomial(EPISODES, wins(rng, ease, 2, seeds, games))
    found = over_trainings(Scores(((other - one) / EPISODES).round(12)))
    return (found.low, found.high) if found else None


def of_these_weights(
    rng: np.random.Generator, games: int, ease: float, better: float, episodes: int
) -> tuple[float, float]:
    """The interval of the difference between two trained policies."""
    logit = ease + EASIER * rng.standard_normal(games) + np.array([[0.0], [better]])
    won = rng.binomial(episodes, sigmoid(logit + LIKING * rng.standard_normal((2, games)))) / episodes
    low, high, _ = over_tasks((won[1] - won[0]).round(12), derive("coverage"))
    return low, high


def better_by(ease: float, better: float) -> float:
    """The true difference of these two policies."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    spread = np.sqrt(EASIER**2 + LIKING**2) * nodes
    gained = sigmoid(ease + better + spread) - sigmoid(ease + spread)
    return float(gained @ weights / weights.sum())


def steps(rng: np.random.Generator, games: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Invalid steps and all steps by game, for one episode: 2 of 7 are invalid; 10 steps on average, some
    more."""
    lengths = 1 + rng.poisson(9 * rng.gamma(2, 0.5, games))
    return rng.binomial(lengths, rng.beta(2, 5, games)), lengths


def invalid(rng: np.random.Generator, games: int) -> tuple[float, float]:
    """The interval of the share of invalid steps."""
    found = clustered_share(*steps(rng, games))
    return found.low, found.high


def length(rng: np.random.Generator, games: int) -> Ends:
    """The interval of an episode's mean length."""
    found = clustered_mean(steps(rng, games)[1], np.ones(games, dtype=np.int64))
    return (found.low, found.high) if found else None


def success(rng: np.random.Generator, games: int, ease: float) -> tuple[float, float]:
    """The interval of a trained policy's success, without the luck of its training."""
    won = rng.binomial(1, sigmoid(ease + EASIER * rng.standard_normal(games)))
    found = wilson(float(won.mean()), games)
    return found.low, found.high


def success_truth(ease: float) -> float:
    """The mean probability of a win over games."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    return float(sigmoid(ease + EASIER * nodes) @ weights / weights.sum())


def coverage(draw: Callable[[np.random.Generator], Ends], wanted: float, draws: int, *place: Any) -> float:
    """The share of experiments whose interval covers ``wanted``, among those that have an interval."""
    rng = generator("interval coverage", *map(str, place))
    found = [ends for ends in (draw(rng) for _ in range(draws)) if ends is not None]
    return float(np.mean([low - 1e-12 <= wanted <= high + 1e-12 for low, high in found]))


def cases() -> Iterator[tuple[str, str, Callable[[np.random.Generator, int], Ends], float]]:
    """The simulated cases: the figure, the case, an experiment by its number of games, and the truth."""
    for name, ease in EASE.items():
        for seeds in (3, 5, 8):
            case = f"{name}, {seeds} seeds"
            yield "level_over_trainings", case, partial(level, ease=ease, seeds=seeds), truth(ease)
            yield "difference_over_trainings", case, partial(difference, ease=ease, seeds=seeds), 0.0
        for better in (0.0, 1.0):
            for episodes in (1, 3):
                true = better_by(ease, better)
                case = f"{name}, {100 * true:.0f} points better, {episodes} episodes"
                policies = partial(of_these_weights, ease=ease, better=better, episodes=episodes)
                yield "difference_over_tasks", case, policies, true
        yield "success_rate", name, partial(success, ease=ease), success_truth(ease)
    yield "share_of_steps", "2 of 7 invalid", invalid, 2 / 7
    yield "mean_of_episodes", "10 steps", length, 10.0


def measured(draws: int, games: Sequence[int] = GAMES) -> dict[str, dict[str, dict[str, float]]]:
    """Figure to case to number of games to coverage."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for figure, case, draw, true in cases():
        found.setdefault(figure, {})[case] = {
            str(n): round(coverage(lambda rng, d=draw, n=n: d(rng, n), true, draws, figure, case, n), 4)  # type: ignore[misc]
            for n in games
        }
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--result", type=Path, default=RESULT)
    chosen = parser.parse_args(arguments)
    write_json(
        chosen.result, {"what": __doc__.splitlines()[0], "draws": chosen.draws, **measured(chosen.draws)}
    )


if __name__ == "__main__":
    main()
