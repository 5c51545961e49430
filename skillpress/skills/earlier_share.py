"""How much of a step's corpus earlier steps made: what the buffer adds to the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillpress.skills.buffer import Success
from skillpress.skills.step_corpus import StepCorpus


def earlier_share(corpus: StepCorpus, batch: Sequence[Success]) -> float:
    """The share of the corpus, in [0, 1], that the batch does not hold; at 0 the batch alone makes the
    dictionary.

    Args:
        corpus: has at least one success.
        batch: the step's successes.
    """
    whole = Counter([*corpus.judged, *corpus.ranked_with])
    return (whole - Counter(batch)).total() / whole.total()
