"""A running corpus that forgets by chance, with no edge (``skills.corpus: decayed``).

A FIFO buffer keeps its newest ``capacity`` successes whole and drops all older ones at once. Where a batch
has more successes than the capacity, every step starts from nothing, and the dictionary drifts with the batch
alone. Here every success of an earlier step stays with probability γ = 0.9 in each further step. So one of
age a, in steps, is in the corpus with probability γ^a, whatever the size of a batch. Half of them are gone
after 6.6 steps, their mean age is γ / (1 - γ) = 9 steps, and n successes per step make a corpus of about n /
(1 - γ) = 10 n. A phrase leaves the dictionary when its uses have thinned out, not when one batch leaves a
buffer.

γ is a constant. A corpus of about ten batches is long compared with one batch, with which phrases come and go
by chance (half of them live for 3 or 4 steps), and short compared with a training, in which the policy
changes. Draws are from the experiment's seed and the number of the step, so a resumed run thins the same
successes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillpress.core.seeds import generator
from skillpress.skills.buffer import Success, successes_of, successes_state
from skillpress.skills.step_corpus import StepCorpus, SuccessCorpus

KEPT = 0.9
"""γ, the probability with which an earlier success stays for one more step."""


class Decayed(SuccessCorpus):
    """The batch, and every success of a steps ago with probability γ^a."""

    def __init__(self, capacity: int, seed: int) -> None:
        """No successes.

        Raises:
            ValueError: ``capacity`` is not 0; γ decides how many successes are kept.
        """
        if capacity:
            raise ValueError(f"the buffer's capacity is {capacity}, must be 0: this corpus keeps no buffer")
        self._seed, self._steps = seed, 0
        self._earlier: list[Success] = []

    @property
    def earlier(self) -> list[Success]:
        """The successes that have stayed until this step."""
        return list(self._earlier)

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """The earlier successes that have stayed, then the batch."""
        return StepCorpus([*self._earlier, *batch])

    def push(self, batch: Sequence[Success]) -> None:
        """Draw which of all successes, the batch's among them, stay for the next step."""
        self._steps += 1
        known = [*self._earlier, *batch]
        drawn = generator(self._seed, "decayed corpus", self._steps).random(len(known))
        self._earlier = [success for success, draw in zip(known, drawn, strict=True) if draw < KEPT]

    def state_dict(self) -> dict[str, Any]:
        """The number of steps done, and the successes that have stayed."""
        return {"steps": self._steps, **successes_state(self._earlier)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned.

        Raises:
            ValueError: another corpus wrote it, or it is damaged.
        """
        earlier, steps = successes_of(state), state.get("steps")
        if not isinstance(steps, int):
            raise ValueError(
                f"the state's 'steps' is {steps!r}, must be a number: skills.corpus decayed did not write "
                "it; start this training from the beginning"
            )
        self._earlier, self._steps = earlier, steps
