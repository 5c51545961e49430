"""Local search: add, prune and swap phrases until no move helps.

The greedy search only ever merges two neighbouring phrases and keeps both parts. Here any n-gram of the
corpus may be added, any phrase removed, and any phrase replaced by another:

    while adding helps, add the gram that lowers 𝓛_BDL most
    for every phrase in turn, until as many turns as there are phrases went by without a change:
        take the phrase out; put in the gram that then helps most, if any
        keep the change when 𝓛_BDL is lower than before, otherwise undo it
        after a change, again add while that helps

One local optimum may be a percent or two above the next. So there are two starts: the greedy dictionary, and
the phrases that remain after ``pruning.py``. The second is given up if it does not look like winning. The
result is never worse than greedy.

Equal gains are decided by the phrases' lexicographic order, so the corpus's order has no effect.

Few grams have to be evaluated, because what one saved before bounds what it can save now. With S(𝒞) segments
of a sequence under 𝒞 and gain(g) = S(𝒞) - S(𝒞 + g), two bounds hold in every sequence that holds both grams.
Removing p raises no gain by more than S(𝒞 - p) - S(𝒞). Adding q raises none by more than its most uses * (|q|
- 1) minus what q itself saved. In other sequences gains stay the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import Corpus, FoundPhrases, Longs
from skillpress.skills.cover import (
    Cover,
    bits,
    bits_per_sequence,
    cover_with_singletons,
    saving,
    set_member,
)
from skillpress.skills.description_length import MINIMAL_GAIN
from skillpress.skills.grams import Grams, number_grams, phrases_of
from skillpress.skills.pruning import prune_everything
from skillpress.skills.search.greedy import merge_pairs

HOPELESS = 1.1
"""A start is not improved at all if its bits exceed this multiple of the bits to beat."""

PATIENCE = 5
"""Turns in a row without a change before a dictionary above the bits to beat is given up."""


class Progress(NamedTuple):
    """The current dictionary; the functions of this module change it in place."""

    cover: Cover
    learned: Longs
    """(G,) its grams of two or more skills, in the order added; the rest is spare room."""
    most: Longs
    """(G,) upper bound on the segments that each gram can save now."""
    seen: Longs
    """(G,) when each gram's bound was last raised, counted in sequences; entry 0 is the count itself."""


def search_refined(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """A dictionary that no addition, removal or swap improves; nothing is random."""
    grams = number_grams(corpus, max_phrase_length)
    reached, best = improve(grams, merge_pairs(grams, True, -1), np.inf)
    other_reached, other = improve(grams, prune_everything(grams), reached)
    return FoundPhrases(phrases_of(corpus, grams, other if other_reached < reached else best))


@compiled
def improve(grams: Grams, start: Longs, rival: float) -> tuple[float, Longs]:
    """𝓛_BDL and learned grams of a local optimum reached from the grams ``start``.

    ``rival`` is the 𝓛_BDL to beat; a search that does not look like beating it ends early. Pass infinity to
    get a local optimum in any case.
    """
    progress = _start(grams, start)
    cover = progress.cover
    if bits(grams, cover) > HOPELESS * rival:
        return bits(grams, cover), start
    _add_while_it_helps(grams, progress)
    turn, failures = 0, 0
    while failures < _learned(grams, progress):
        if failures >= PATIENCE and bits(grams, cover) >= rival:
            break
        # The number of phrases changes from turn to turn.
        turn = turn % _learned(grams, progress)
        if _take_out_or_swap(grams, progress, turn):
            _add_while_it_helps(grams, progress)
            failures = 0
        else:
            turn += 1
            failures += 1
    return bits(grams, cover), progress.learned[: _learned(grams, progress)].copy()


@compiled
def _add_while_it_helps(grams: Grams, progress: Progress) -> None:
    while True:
        gram = _best_addition(grams, progress, bits(grams, progress.cover) - MINIMAL_GAIN)
        if gram < 0:
            break
        _add(grams, progress, gram)


@compiled
def _take_out_or_swap(grams: Grams, progress: Progress, position: int) -> bool:
    """Try to remove one learned gram or to replace it by another; returns whether that helped."""
    cover = progress.cover
    before = bits(grams, cover) - MINIMAL_GAIN
    most, totals = progress.most.copy(), cover.totals.copy()
    phrases, needed = cover.phrases.copy(), cover.needed.copy()
    forward, backward = cover.forward.copy(), cover.backward.copy()
    taken = progress.learned[position]
    _remove(grams, progress, position)
    pruned = bits(grams, cover)
    gram = _best_addition(grams, progress, min(pruned, before))
    if gram >= 0:
        _add(grams, progress, gram)
        return True
    if pruned < before:
        return True
    cover.phrases[:], cover.needed[:] = phrases, needed
    cover.forward[:], cover.backward[:] = forward, backward
    cover.member[taken] = True
    cover.totals[:] = totals
    # ``seen`` is not restored: its marks matter only within one call of ``_raise_bounds``.
    progress.most[:] = most
    last = _learned(grams, progress) - 1
    progress.learned[position + 1 : last + 1] = progress.learned[position:last].copy()
    progress.learned[position] = taken
    return False


@compiled
def _best_addition(grams: Grams, progress: Progress, bar: float) -> int:
    """The gram whose addition gives the fewest bits per sequence, below ``bar``; -1 if none does."""
    cover = progress.cover
    size, skills, segments = cover.totals
    at_best = np.full(len(grams.lengths), np.inf)
    for gram in range(grams.alphabet_size, len(grams.lengths)):
        if not cover.member[gram]:
            fewest = segments - progress.most[gram]
            at_best[gram] = bits_per_sequence(grams, size + 1, skills + grams.lengths[gram], fewest)
    best = -1
    while True:
        gram = int(np.argmin(at_best))
        # Grams at the bar are evaluated too, because the phrases' order decides between equal ones.
        if not at_best[gram] <= bar:
            return best
        at_best[gram] = np.inf
        # An exact saving is the lowest bound; it holds until ``_set`` raises it.
        progress.most[gram] = saving(grams, cover, gram)
        fewest = segments - progress.most[gram]
        reached = bits_per_sequence(grams, size + 1, skills + grams.lengths[gram], fewest)
        if reached < bar or (reached == bar and best >= 0 and grams.rank[gram] < grams.rank[best]):
            best, bar = gram, reached


@compiled
def _start(grams: Grams, learned: Longs) -> Progress:
    most, seen = grams.uses * (grams.lengths - 1), np.zeros(len(grams.lengths), np.int64)
    progress = Progress(cover_with_singletons(grams), np.empty(len(grams.lengths), np.int64), most, seen)
    for gram in learned:
        _add(grams, progress, gram)
    return progress


@compiled
def _learned(grams: Grams, progress: Progress) -> int:
    """How many grams are learned."""
    return int(progress.cover.totals[0] - grams.alphabet_size)


@compiled
def _add(grams: Grams, progress: Progress, gram: int) -> None:
    progress.learned[_learned(grams, progress)] = gram
    _set(grams, progress, gram, True)


@compiled
def _remove(grams: Grams, progress: Progress, position: int) -> None:
    _set(grams, progress, progress.learned[position], False)
    for later in range(position, _learned(grams, progress)):
        progress.learned[later] = progress.learned[later + 1]


@compiled
def _set(grams: Grams, progress: Progress, gram: int, wanted: bool) -> None:
    """Put a gram in or take it out, and raise the bounds of grams that share a sequence with it."""
    needed, before = progress.cover.needed, progress.cover.needed.copy()
    set_member(grams, progress.cover, gram, wanted)
    length = grams.lengths[gram]
    entry, stop = grams.occurrence_starts[gram], grams.occurrence_starts[gram + 1]
    while entry < stop:
        row = grams.row[grams.occurrences[entry]]
        uses, free = 0, 0
        while entry < stop and grams.row[grams.occurrences[entry]] == row:
            if grams.occurrences[entry] >= free:
                uses, free = uses + 1, grams.occurrences[entry] + length
            entry += 1
        by = needed[row] - before[row]
        if wanted:
            by += uses * (length - 1)
        if by:
            _raise_bounds(grams, progress, row, by * grams.weights[row])


@compiled
def _raise_bounds(grams: Grams, progress: Progress, row: int, by: int) -> None:
    """Raise the bound of every gram of a sequence once."""
    seen = progress.seen
    seen[0] += 1
    for place in range(grams.starts[row], grams.starts[row + 1] - 1):
        for length in range(2, grams.longest + 1):
            gram = grams.numbers[place, length - 1]
            if gram < 0:
                break
            if seen[gram] != seen[0]:
                seen[gram] = seen[0]
                always = grams.uses[gram] * (grams.lengths[gram] - 1)
                progress.most[gram] = min(progress.most[gram] + by, always)
