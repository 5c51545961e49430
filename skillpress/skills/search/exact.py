"""The best dictionary with a certificate, by mixed-integer programming.

Because of log2 |𝒞|, 𝓛_BDL is not linear in the dictionary; for a fixed number m of learned phrases it is. So
one program is solved per m. It has a binary variable per n-gram of the corpus (is it a phrase?). It also has
a flow of one unit through every distinct sequence, along single skills for free and along an n-gram only if
that is a phrase:

    minimise   Σ_p (|p| log2 K + log2 L) x_p + log2(K + m) Σ_s w_s * (flow on all arcs of s)
    subject to Σ_p x_p <= m,   one unit from the first place of s to its last,   flow on an arc <= x_p

A program proves that no dictionary of its size is better if its floor (a bound that needs no solver) or its
optimum cannot beat the best dictionary known. If the time ends before a program is settled, it keeps its
proven bound, and the gap is reported instead of hidden. Proofs hold to the solver's tolerances, about 1e-6
bits in the whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from time import monotonic

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from skillpress.skills.corpus import Corpus, Floats, FoundPhrases, Longs, Phrase
from skillpress.skills.description_length import dictionary_bits
from skillpress.skills.grams import Grams, number_grams, phrases_of
from skillpress.skills.lookup import make_table, uses
from skillpress.skills.search.refined import search_refined
from skillpress.skills.segmentation import segmentation_cost

TIME_LIMIT = 60.0
"""Seconds until the search stops and returns the best dictionary and the bound proven so far."""

TOLERANCE = 1e-7
"""Bits in total by which a program must beat the best dictionary known."""

OPTIMAL, INFEASIBLE = 0, 2
"""The status codes of ``scipy.optimize.milp`` that settle a program."""


def search_exactly(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """The optimum of Eq. 4, or the best dictionary and lower bound known after ``TIME_LIMIT``."""
    return search_within(corpus, max_phrase_length, TIME_LIMIT)


def search_within(
    corpus: Corpus, max_phrase_length: int, time_limit: float, coded_length: int | None = None
) -> FoundPhrases:
    """Same as :func:`search_exactly`, with a ``time_limit`` in seconds.

    ``coded_length`` is L in the description length alone. 1 stores no lengths; None means L.
    """
    deadline = monotonic() + time_limit
    coded_length = coded_length or max_phrase_length
    best = search_refined(corpus, max_phrase_length, 0).phrases
    best_bits = total_bits(corpus, best, max_phrase_length, coded_length)
    grams = number_grams(corpus, max_phrase_length)
    size = corpus.alphabet_size
    singletons = dictionary_bits(size, size, size, coded_length)
    open_sizes: dict[int, float] = {}
    for learned in range(len(grams.lengths) - size + 1):
        _, floor = _candidates(corpus, grams, learned, coded_length)
        if floor < best_bits - TOLERANCE:
            open_sizes[learned] = floor
    # First without whole numbers, which settles many sizes in little time.
    for integral in (False, True):
        # Sizes near the best one known first: a better dictionary lowers the bar for all others.
        for learned in sorted(open_sizes, key=lambda learned: abs(learned - len(best))):
            remaining = deadline - monotonic()
            if remaining <= 0:
                break
            candidates, _ = _candidates(corpus, grams, learned, coded_length)
            price = _price(grams, coded_length)[candidates]
            bar = best_bits - TOLERANCE - singletons
            chosen, proven = _solve(
                corpus,
                grams,
                candidates=candidates,
                price=price,
                most=learned,
                size=size + learned,
                bar=bar,
                time_limit=remaining,
                integral=integral,
            )
            if chosen is not None:
                phrases = phrases_of(corpus, grams, chosen)
                # Counted again in whole segments: the solver's objective is right to its tolerance only.
                bits = total_bits(corpus, phrases, max_phrase_length, coded_length)
                if bits < best_bits:
                    best, best_bits = sorted(phrases), bits
            open_sizes[learned] = max(open_sizes[learned], proven + singletons)
        open_sizes = {n: floor for n, floor in open_sizes.items() if floor < best_bits - TOLERANCE}
    return FoundPhrases(best, lower_bound=min([best_bits, *open_sizes.values()]) / corpus.sequences)


def best_without_singletons(
    corpus: Corpus, max_phrase_length: int, coded_length: int | None = None
) -> FoundPhrases:
    """The optimum over *all* dictionaries that can cut the corpus, with or without Σ.

    This is the paper's BF-original (appendix F.1). It lies outside the class 𝒜 of Eq. 4: such a dictionary
    cannot cut every future sequence, so it is useful for comparison but not for shaping rewards. The phrases
    found include the singletons that are needed. It suits small corpora, as there is no time limit.
    ``coded_length`` is the same as in :func:`search_within`.
    """
    coded_length = coded_length or max_phrase_length
    grams = number_grams(corpus, max_phrase_length)
    candidates = np.flatnonzero(grams.uses > 0)
    candidates = np.concatenate((np.unique(corpus.skills[corpus.skills >= 0]), candidates))
    fewest = int(-(-(np.diff(corpus.starts) - 1) // max_phrase_length) @ corpus.weights)
    best: list[Phrase] = []
    best_bits = np.inf
    for size in range(1, len(candidates) + 1):
        cheapest = dictionary_bits(size, size, corpus.alphabet_size, coded_length)
        if cheapest + fewest * log2(size) >= best_bits:
            break
        bar = min(best_bits - TOLERANCE, 1e9)
        price = _price(grams, coded_length)[candidates]
        chosen, _ = _solve(
            corpus,
            grams,
            candidates=candidates,
            price=price,
            most=size,
            size=size,
            bar=bar,
            time_limit=np.inf,
            integral=True,
        )
        if chosen is not None:
            best = sorted(phrases_of(corpus, grams, chosen))
            cut = sum(segmentation_cost(s, set(best), max_phrase_length) * n for s, n in corpus)
            skills = sum(map(len, best))
            stored = dictionary_bits(skills, len(best), corpus.alphabet_size, coded_length)
            best_bits = stored + cut * log2(len(best))
    return FoundPhrases(best, lower_bound=best_bits / corpus.sequences)


def total_bits(
    corpus: Corpus, learned: list[Phrase], max_phrase_length: int, coded_length: int | None = None
) -> float:
    """|𝓑⁺| * 𝓛_BDL of the singletons and the learned phrases; ``coded_length`` as in the searches."""
    phrases = [*((skill,) for skill in range(corpus.alphabet_size)), *learned]
    segments = sum(uses(corpus, make_table(phrases, corpus.alphabet_size, max_phrase_length)))
    skills = sum(map(len, phrases))
    coded_length = coded_length or max_phrase_length
    bits = dictionary_bits(skills, len(phrases), corpus.alphabet_size, coded_length)
    return bits + segments * log2(len(phrases))


def _price(grams: Grams, coded_length: int) -> Floats:
    """Bits that each gram adds to the dictionary."""
    return np.asarray(grams.lengths * log2(grams.alphabet_size) + log2(coded_length), np.float64)


def _candidates(corpus: Corpus, grams: Grams, learned: int, coded_length: int) -> tuple[Longs, float]:
    """Grams that can pay among K + ``learned`` phrases, and a lower bound in bits for such dictionaries.

    A phrase saves at most uses * (|p| - 1) segments. The lower bound lets the ``learned`` best grams save all
    of that, and alternatively cuts every sequence into ceil(|s| / L) segments.
    """
    size, longest = corpus.alphabet_size, grams.longest
    index_bits = log2(size + learned)
    profit = grams.uses * (grams.lengths - 1) * index_bits - _price(grams, coded_length)
    paying = np.flatnonzero((profit > 0) & (grams.lengths > 1))
    singletons = dictionary_bits(size, size, size, coded_length)
    best_case = np.sort(profit[paying])[::-1][:learned].sum()
    fewest = int(-(-(np.diff(corpus.starts) - 1) // longest) @ corpus.weights)
    shortest = learned * (2 * log2(size) + log2(coded_length))
    floor = max(corpus.total_skills * index_bits - best_case, fewest * index_bits + shortest)
    return paying, singletons + floor


def _solve(
    corpus: Corpus,
    grams: Grams,
    candidates: Longs,
    price: Floats,
    most: int,
    size: int,
    bar: float,
    time_limit: float,
    integral: bool,
) -> tuple[Longs | None, float]:
    """The cheapest choice of at most ``most`` candidates at these prices, and a proven lower bound in bits.

    Segments cost log2 ``size`` bits. Single skills are free phrases unless they are candidates. The choice is
    empty if every choice costs more than ``bar`` bits, or if time runs out first. Without ``integral``, a
    part of a phrase may be chosen, which proves less in less time.
    """
    arcs = _arcs(grams, candidates)
    objective = np.concatenate((price, corpus.weights[grams.row[arcs.start]] * log2(size)))
    count = len(candidates)
    chosen = coo_array((np.ones(count), (np.zeros(count, int), np.arange(count))), (1, len(objective)))
    result = milp(
        objective,
        # Only phrases: once they are chosen, the cheapest flow through a sequence is whole by itself.
        integrality=np.arange(len(objective)) < (count if integral else 0),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(chosen.tocsr(), ub=most),
            LinearConstraint(coo_array(objective[None, :]).tocsr(), ub=bar),
            _flow(corpus, arcs, count),
            _only_along_phrases(arcs, count),
        ],
        # By default the solver stops at a relative gap, and a certificate needs the optimum.
        options={"time_limit": time_limit, "mip_rel_gap": 0},
    )
    if result.status == INFEASIBLE:
        return None, bar
    bound = result.fun if result.status == OPTIMAL else result.mip_dual_bound
    proven = -np.inf if bound is None else bound
    # Solvers return whole numbers up to a tolerance.
    return (candidates[result.x[:count] > 0.5] if integral and result.x is not None else None), proven


@dataclass(frozen=True)
class _Arcs:
    """Steps through a sequence: single skills first, then candidates; one array entry each."""

    start: Longs
    """Place where the arc starts."""
    length: Longs
    candidate: Longs
    """Position among the candidates; -1 for a single skill."""


def _arcs(grams: Grams, candidates: Longs) -> _Arcs:
    singles = np.flatnonzero((grams.numbers[:, 0] >= 0) & ~np.isin(grams.numbers[:, 0], candidates))
    column = grams.lengths[candidates] - 1
    places = [np.flatnonzero(grams.numbers[:, c] == g) for g, c in zip(candidates, column, strict=True)]
    counts = [len(entries) for entries in places]
    return _Arcs(
        start=np.concatenate((singles, *places)),
        length=np.concatenate(
            (np.ones(len(singles), np.int64), np.repeat(grams.lengths[candidates], counts))
        ),
        candidate=np.concatenate((np.full(len(singles), -1), np.repeat(np.arange(len(candidates)), counts))),
    )


def _flow(corpus: Corpus, arcs: _Arcs, candidates: int) -> LinearConstraint:
    """Outflow minus inflow of each place: 1 at a sequence's start, -1 at its end, else 0."""
    column = candidates + np.arange(len(arcs.start))
    entries = np.concatenate((np.ones(len(column)), -np.ones(len(column))))
    where = (np.concatenate((arcs.start, arcs.start + arcs.length)), np.concatenate((column, column)))
    places = len(corpus.skills)
    supply = np.zeros(places)
    supply[corpus.starts[:-1]] += 1
    supply[corpus.starts[1:] - 1] -= 1
    matrix = coo_array((entries, where), (places, candidates + len(column))).tocsr()
    return LinearConstraint(matrix, lb=supply, ub=supply)


def _only_along_phrases(arcs: _Arcs, candidates: int) -> LinearConstraint:
    """flow - x_p <= 0 on the arcs of candidate p."""
    long = np.flatnonzero(arcs.candidate >= 0)
    line = np.arange(len(long))
    entries = np.concatenate((np.ones(len(long)), -np.ones(len(long))))
    where = (np.concatenate((line, line)), np.concatenate((candidates + long, arcs.candidate[long])))
    matrix = coo_array((entries, where), (len(long), candidates + len(arcs.start))).tocsr()
    return LinearConstraint(matrix, ub=0)
