"""The first sentences of a finished experiment: success compared with its start and a random player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.evaluation.statistics import Comparison, EvaluationSummary, SuccessRate
from skillpress.evaluation.statistics.paired import PairedTest
from skillpress.pipeline.files import EXPLORER, START, TRAINED
from skillpress.pipeline.finished.results import comparisons, summaries

ADVICE = Path("docs/training_made_it_worse.md")
"""The page with advice, in the repository and in every workspace."""
RANDOM = "random player"
"""The sentences' name for the random explorer."""


@dataclass(frozen=True)
class Effect:
    """Success of the policies of one experiment on the same held-out tasks, whole episodes.

    Every interval is at 95%, over tasks, for these policies, and holds by itself.
    """

    start: SuccessRate
    random: SuccessRate
    floor: PairedTest
    """The trained policy, or without training the start, against the random player."""
    trained: SuccessRate | None = None
    """None without training."""
    change: PairedTest | None = None
    """The trained policy against the start; None without training."""

    @property
    def worse(self) -> bool:
        """Whether training lowered success by more than chance would explain."""
        return self.change is not None and self.change.high < 0

    @property
    def below_random(self) -> bool:
        """Whether the random player won more, by more than chance would explain."""
        return self.floor.high < 0

    @property
    def advice(self) -> bool:
        """Whether to name the page that says what to try."""
        return self.worse or self.below_random

    @property
    def sentences(self) -> str:
        """The levels, training's change, and the distance from the random player, each with its interval."""
        return " ".join(f"{said[0].upper()}{said[1:]}." for said in self._said())

    def _said(self) -> Iterator[str]:
        levels = f"start {self.start}, {RANDOM} {self.random}"
        tasks = f"{self.start.tasks:,} held-out tasks"
        if self.trained is None or self.change is None:
            yield f"success on {tasks}, without training: {levels}"
            yield _distance("start", self.floor)
            return
        yield f"success of one training on {tasks}: {self.trained}; {levels}"
        said = f"training changed success by {_difference(self.change)}"
        if self.worse:
            yield f"{said}: it made the policy worse"
        else:
            yield said if self.change.low > 0 else f"{said}: these tasks tell no difference"
        yield _distance("trained policy", self.floor)


def effect(
    policies: Mapping[str, EvaluationSummary], found: Mapping[str, Comparison], training_steps: int
) -> Effect:
    """The effect by the summaries and the paired tests of an evaluation; ``StorageError`` without a test."""
    rates = {name: summary.pass_at_1 for name, summary in policies.items()}
    start, random = rates[START], rates[EXPLORER]
    if not training_steps:
        return Effect(start, random, floor=_whole(found, START, EXPLORER))
    return Effect(
        start,
        random,
        floor=_whole(found, TRAINED, EXPLORER),
        trained=rates[TRAINED],
        change=_whole(found, TRAINED, START),
    )


def _whole(found: Mapping[str, Comparison], second: str, first: str) -> PairedTest:
    """The test of whole episodes; ``StorageError`` if an earlier version did not compare the two."""
    pair = f"{second} against {first}"
    if pair not in found:
        raise StorageError(f"results/evaluation.json: does not compare {pair}; run the stage evaluate_policy")
    return found[pair].tests[-1]


def effect_of(results: Path, training_steps: int) -> Effect:
    """The effect according to ``results/evaluation.json``. Raises ``StorageError`` for a damaged file."""
    return effect(summaries(results), comparisons(results), training_steps)


def effect_line(results: Path, training_steps: int) -> str:
    """The console's line about a finished experiment; ``StorageError`` for a damaged file."""
    found = effect_of(results, training_steps)
    to_try = f" {ADVICE} says what to try." if found.advice else ""
    return found.sentences + to_try


def _distance(policy: str, test: PairedTest) -> str:
    if test.low <= 0 <= test.high:
        return f"these tasks do not tell the {policy} from the {RANDOM}: {_difference(test)}"
    least, most = sorted((abs(test.low), abs(test.high)))
    side = "below" if test.high < 0 else "above"
    points = f"{100 * abs(test.difference):.1f} points ({100 * least:.1f} to {100 * most:.1f})"
    return f"the {policy} is {side} the {RANDOM}, by {points}"


def _difference(test: PairedTest) -> str:
    return f"{_signed(test.difference)} points ({_signed(test.low)} to {_signed(test.high)})"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
