"""A dictionary laid over a corpus, kept up to date while phrases are added and removed.

For every place i of a sequence the cover stores which phrases start there (one bit per length), and the
fewest phrases that cover the skills before it (forward) and from it on (backward). From these the saving of a
new phrase p follows without a new segmentation. If p occurs once, at i, the best cut that uses it costs
forward(i) + 1 + backward(i + |p|). If it occurs often, only the stretch between its first and last occurrence
is computed again. Sequences without p are not touched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skillpress.skills import description_length as mdl
from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import Flags, Ints, Longs, Shorts
from skillpress.skills.grams import Grams

dictionary_bits = compiled(mdl.dictionary_bits)
data_bits = compiled(mdl.data_bits)


class Cover(NamedTuple):
    """The state of a cover; the functions of this module change it in place."""

    phrases: Shorts
    """(places,) bit l - 1 is set if a phrase of l skills starts there; bit 0 is always set (singletons)."""
    forward: Ints
    """(places,) seg of the sequence's skills before the place."""
    backward: Ints
    """(places,) seg of the sequence's skills from the place on."""
    needed: Ints
    """(D,) seg(s)."""
    scratch: Ints
    """(places of the longest sequence,) space for trial segmentations."""
    member: Flags
    """(G,) whether a gram is in the dictionary."""
    totals: Longs
    """(3,) the whole numbers that determine 𝓛_BDL: |𝒞|, Σ|p| over its phrases, Σ seg over the corpus."""


@compiled
def cover_with_singletons(grams: Grams) -> Cover:
    """The cover of Σ: every skill is a segment."""
    places = len(grams.row)
    forward, backward = np.empty(places, np.int32), np.empty(places, np.int32)
    longest = 0
    for row in range(len(grams.weights)):
        start, end = grams.starts[row], grams.starts[row + 1] - 1
        longest = max(longest, end - start + 1)
        for place in range(start, end + 1):
            forward[place] = place - start
            backward[place] = end - place
    needed = (grams.starts[1:] - grams.starts[:-1] - 1).astype(np.int32)
    scratch = np.empty(longest, np.int32)
    segments = np.sum(grams.weights * needed)
    totals = np.array([grams.alphabet_size, grams.alphabet_size, segments], np.int64)
    return Cover(
        phrases=np.ones(places, np.uint16),
        forward=forward,
        backward=backward,
        needed=needed,
        scratch=scratch,
        member=grams.lengths == 1,
        totals=totals,
    )


@compiled
def bits(grams: Grams, cover: Cover) -> float:
    """𝓛_BDL of the dictionary, in bits per sequence (Eq. 3)."""
    size, skills, segments = cover.totals
    return bits_per_sequence(grams, size, skills, segments)


@compiled
def bits_per_sequence(grams: Grams, size: int, skills: int, segments: int) -> float:
    """𝓛_BDL of a dictionary of ``size`` phrases with ``skills`` skills (Eq. 3)."""
    total = dictionary_bits(skills, size, grams.alphabet_size, grams.longest) + data_bits(segments, size)
    return total / grams.sequences


@compiled
def saving(grams: Grams, cover: Cover, gram: int) -> int:
    """How many fewer segments the corpus would need if the gram were a phrase; exact."""
    length = grams.lengths[gram]
    saved = 0
    for entry in range(grams.occurrence_starts[gram], grams.repeats[gram]):
        place = grams.occurrences[entry]
        row = grams.row[place]
        fewer = cover.needed[row] - cover.forward[place] - 1 - cover.backward[place + length]
        # A cut need not use the gram, so the gram never costs a segment.
        saved += grams.weights[row] * max(fewer, 0)
    entry, stop = grams.repeats[gram], grams.occurrence_starts[gram + 1]
    while entry < stop:
        row = grams.row[grams.occurrences[entry]]
        beyond = entry + 1
        while beyond < stop and grams.row[grams.occurrences[beyond]] == row:
            beyond += 1
        fewer = cover.needed[row] - _needed_with_repeats(grams, cover, entry, beyond, length)
        saved += grams.weights[row] * max(fewer, 0)
        entry = beyond
    return saved


@compiled
def _needed_with_repeats(grams: Grams, cover: Cover, entry: int, beyond: int, length: int) -> int:
    """Fewest segments of a sequence that uses the gram at least once, at occurrences[entry:beyond].

    ``scratch`` is ``forward`` with the gram allowed. It differs only after the first occurrence, so only
    improved places can improve others. After the last use, ``backward`` stays valid.
    """
    first, last = grams.occurrences[entry], grams.occurrences[beyond - 1]
    for place in range(first, last + 1):
        cover.scratch[place - first] = cover.forward[place]
    needed = np.int32(2**30)
    for place in range(first, last + 1):
        reached = cover.scratch[place - first] + 1
        # The gram has lowered this place, so it may lower later ones.
        if reached <= cover.forward[place]:
            bits = cover.phrases[place]
            target = place + 1
            while bits and target <= last:
                if bits & 1 and reached < cover.scratch[target - first]:
                    cover.scratch[target - first] = reached
                bits >>= 1
                target += 1
        if place == grams.occurrences[entry]:
            entry += 1
            needed = min(needed, reached + cover.backward[place + length])
            if place + length <= last and reached < cover.scratch[place + length - first]:
                cover.scratch[place + length - first] = reached
    return int(needed)


@compiled
def set_member(grams: Grams, cover: Cover, gram: int, wanted: bool) -> int:
    """Add a gram to the dictionary or remove it; returns the change of Σ seg."""
    length, longest = grams.lengths[gram], grams.longest
    bit = np.uint16(1 << (length - 1))
    cover.member[gram] = wanted
    change = 0
    entry, stop = grams.occurrence_starts[gram], grams.occurrence_starts[gram + 1]
    while entry < stop:
        first = last = grams.occurrences[entry]
        row = grams.row[first]
        start, end = grams.starts[row], grams.starts[row + 1] - 1
        while entry < stop and grams.row[grams.occurrences[entry]] == row:
            last = grams.occurrences[entry]
            if wanted:
                cover.phrases[last] |= bit
            else:
                cover.phrases[last] &= ~bit
            entry += 1
        _recompute_forward(
            cover.phrases,
            cover.forward,
            start=start,
            first=first + length,
            last=last + length,
            end=end,
            longest=longest,
        )
        _recompute_backward(
            cover.phrases, cover.backward, start=start, first=first, last=last, longest=longest
        )
        change += grams.weights[row] * (cover.backward[start] - cover.needed[row])
        cover.needed[row] = cover.backward[start]
    cover.totals[0] += 1 if wanted else -1
    cover.totals[1] += length if wanted else -length
    cover.totals[2] += change
    return change


@compiled
def _recompute_forward(
    phrases: Shorts, forward: Ints, start: int, first: int, last: int, end: int, longest: int
) -> None:
    """Recompute places first..end, until L places in a row after ``last`` have not changed."""
    unchanged = 0
    for place in range(first, end + 1):
        fewest = forward[place - 1] + 1
        for length in range(2, min(longest, place - start) + 1):
            if phrases[place - length] >> (length - 1) & 1:
                fewest = min(fewest, forward[place - length] + 1)
        unchanged = unchanged + 1 if fewest == forward[place] else 0
        forward[place] = fewest
        if place >= last and unchanged >= longest:
            break


@compiled
def _recompute_backward(
    phrases: Shorts, backward: Ints, start: int, first: int, last: int, longest: int
) -> None:
    """Recompute places last..start, as the mirror image of :func:`_recompute_forward`."""
    unchanged = 0
    for place in range(last, start - 1, -1):
        fewest = backward[place + 1] + 1
        bits = phrases[place] >> 1
        target = place + 2
        while bits:
            if bits & 1:
                fewest = min(fewest, backward[target] + 1)
            bits >>= 1
            target += 1
        unchanged = unchanged + 1 if fewest == backward[place] else 0
        backward[place] = fewest
        if place <= first and unchanged >= longest:
            break
