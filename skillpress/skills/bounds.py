"""Bounds on how well a dictionary will describe *future* successes (Theorem 3, Proposition 4).

The loss of a sequence is the share of the bits that it needs, measured against the longest episode: l(s) =
(L_dict/m + seg(s, 𝒞) log2|𝒞|) / U, with U = L_dict/m + T log2|𝒞|. Each bound below holds with probability at
least 1 - δ over m sequences drawn i.i.d. Times U, it is a bound in bits per sequence.

    theorem_3            mean + sqrt((L_dict ln 2 + ln(m/δ)) / 2m)                             (Eq. 7)
    theorem_3_exact_z    the same with the prior normalised: ln(1/P(𝒞)) = L_dict ln 2 + ln Z
    kl_inverse           the largest l with kl(mean || l) <= (ln(1/P(𝒞)) + ln(2 sqrt(m)/δ)) / m
    union                the largest l with kl(mean || l) <= (ln(1/P(𝒞)) + ln(1/δ)) / m
    half_sample          𝒞 from one half; on the other, kl(mean || l) <= ln(1/δ) / (m/2)
    proposition_4        Eq. 8, in bits, if no sequence ever needs more than K* segments

``union`` needs only one Chernoff bound per dictionary, since only one dictionary is used in the end.
``half_sample`` does not pay for the size of the class, but it uses only half of the data. Both assume what
the paper assumes and training does not meet: the buffer keeps sequences of older policies, and the rollouts
of one task are not independent. The numbers say what the theorem would give, no more.

Two points help to read them. In normalised loss a dictionary with a large U looks good for that reason alone,
so compare in bits. In bits, Eq. 7 ranks the singletons first at the sample sizes met in training, because its
price for a dictionary exceeds what the phrases save. The half-sample certificate ranks the learned dictionary
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, log1p, log2, sqrt

from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit, fit_as


@dataclass(frozen=True)
class Bound:
    """One bound on the expected loss of a future success."""

    name: str
    loss: float
    """The normalised loss. A bound of 1 or more says nothing."""
    bits: float
    """Bits per sequence: the loss times U."""


@dataclass(frozen=True)
class Certificate:
    """All bounds for a dictionary and for the singletons alone."""

    learned: tuple[Bound, ...]
    """The bounds for the dictionary itself."""
    singletons: tuple[Bound, ...]
    """The same bounds, in the same order, for the singletons alone."""


def log_normaliser(alphabet_size: int, max_phrase_length: int) -> float:
    """ln Z of the prior P(𝒞) = 2^-L_dict(𝒞) / Z over all dictionaries with the singletons (A.2).

    Each of the K^l possible phrases of length l is in or out independently of the others, so the sum over
    dictionaries is a product over phrases. The result is never above 0.
    """
    total = -alphabet_size * log(max_phrase_length * alphabet_size)
    for length in range(2, max_phrase_length + 1):
        phrases = float(alphabet_size) ** length
        # ``log1p``, because the fraction is far below the last bit of 1 for long phrases.
        total += phrases * log1p(1 / (max_phrase_length * phrases))
    return total


def kl_inverse(mean: float, complexity: float) -> float:
    """The largest l in [mean, 1] with kl(mean || l) <= complexity (nats), by bisection."""
    low, high = mean, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if _binary_kl(mean, middle) <= complexity:
            low = middle
        else:
            high = middle
    # The upper end, so that bisection never makes the bound too small.
    return high


def losses(dictionary: SkillDictionary, sample: Sequence[Sequence[str]], max_steps: int) -> list[float]:
    """l(s) of every sequence of a sample of size m, each in [0, 1].

    Raises:
        ValueError: a sequence is longer than the ``max_steps`` of an episode, or the sample is empty.
    """
    check_sample(sample, max_steps)
    scale, share, index = _scale(dictionary, len(sample), max_steps)
    # With one skill and L = 1 nothing takes any bits.
    return [(share + cost * index) / scale if scale else 0.0 for cost in dictionary.costs(sample)]


def bounds(
    dictionary: SkillDictionary, sample: Sequence[Sequence[str]], max_steps: int, delta: float = 0.05
) -> list[Bound]:
    """All bounds for a dictionary that was fitted to ``sample``, and the sample's own mean loss.

    ``proposition_4`` uses the sample's own largest segment count as K*. That is an assumption about future
    sequences; the sample does not prove it.

    Args:
        dictionary: 𝒞, found by any search.
        sample: the m sequences.
        max_steps: T.
        delta: δ, probability that a bound may fail.

    Raises:
        ValueError: see :func:`losses`.
    """
    values = losses(dictionary, sample, max_steps)
    count = len(sample)
    mean = sum(values) / count
    scale, share, index = _scale(dictionary, count, max_steps)
    described = dictionary.dictionary_bits * log(2)
    surprise = described + log_normaliser(len(dictionary.alphabet), dictionary.max_phrase_length)
    bound = {
        "empirical": mean,
        "theorem_3": mean + sqrt((described + log(count / delta)) / (2 * count)),
        "theorem_3_exact_z": mean + sqrt((surprise + log(count / delta)) / (2 * count)),
        "kl_inverse": kl_inverse(mean, (surprise + log(2 * sqrt(count) / delta)) / count),
        "union": kl_inverse(mean, (surprise + log(1 / delta)) / count),
    }
    found = [Bound(name, loss, loss * scale) for name, loss in bound.items()]
    reach = share + max(dictionary.costs(sample)) * index
    bits = mean * scale + reach * sqrt((described + log(count / delta)) / (2 * count))
    return [*found, Bound("proposition_4", bits / scale if scale else 0.0, bits)]


def half_sample(
    dictionary: SkillDictionary,
    held_out: Sequence[Sequence[str]],
    max_steps: int,
    sample_size: int,
    delta: float = 0.05,
) -> Bound:
    """A bound for a dictionary that was fitted without looking at ``held_out``.

    Only seg is random here, so the bound is on seg / T. L_dict is spread over the whole sample of
    ``sample_size`` sequences, as in the other bounds.

    Raises:
        ValueError: see :func:`losses`.
    """
    check_sample(held_out, max_steps)
    scale, share, index = _scale(dictionary, sample_size, max_steps)
    mean = sum(dictionary.costs(held_out)) / len(held_out) / max_steps
    # The dictionary did not see these sequences, so one Chernoff bound suffices and no prior is paid for.
    bits = share + kl_inverse(mean, log(1 / delta) / len(held_out)) * max_steps * index
    return Bound("half_sample", bits / scale if scale else 0.0, bits)


def certify(
    dictionary: SkillDictionary, sample: Sequence[Sequence[str]], max_steps: int, delta: float = 0.05
) -> Certificate:
    """Every bound for a dictionary that was fitted to ``sample``, and for the singletons.

    For ``half_sample`` the dictionary's search runs again on the first half alone. If the sequences of one
    task follow each other, they all lie in one half (except for the task in the middle).

    Raises:
        ValueError: fewer than two sequences, or see :func:`losses` and ``fit``.
    """
    if len(sample) < 2:
        raise ValueError(f"the sample has {len(sample)} sequences; a half-sample bound needs at least two")
    middle = (len(sample) + 1) // 2

    def every_bound(whole: SkillDictionary) -> tuple[Bound, ...]:
        half = fit_as(whole, sample[:middle], whole.alphabet, whole.seed)
        held_out = half_sample(half, sample[middle:], max_steps, len(sample), delta)
        return (*bounds(whole, sample, max_steps, delta), held_out)

    singletons = fit(sample, dictionary.alphabet, dictionary.max_phrase_length, "singletons")
    return Certificate(every_bound(dictionary), every_bound(singletons))


def certifiable(sample: Sequence[Sequence[str]], max_steps: int) -> bool:
    """Whether :func:`certify` can bound the cost of future sequences: there are two, and none has more skills
    than T. If steps have several skills, sequences may be longer than T."""
    return len(sample) > 1 and max(map(len, sample)) <= max_steps


def check_sample(sample: Sequence[Sequence[str]], max_steps: int) -> None:
    """Refuse an empty sample, and sequences longer than an episode of ``max_steps``."""
    if not sample:
        raise ValueError("the sample is empty")
    longest = max(map(len, sample))
    if longest > max_steps:
        raise ValueError(f"a sequence of {longest} skills is longer than the {max_steps} steps of an episode")


def _scale(dictionary: SkillDictionary, count: int, max_steps: int) -> tuple[float, float, float]:
    """U, L_dict/m and log2|𝒞|, in bits."""
    share, index = dictionary.dictionary_bits / count, log2(len(dictionary.phrases))
    return share + max_steps * index, share, index


def _binary_kl(mean: float, other: float) -> float:
    """kl(mean || other) in nats."""
    if other >= 1:
        return 0.0 if mean >= 1 else inf
    kl = 0.0
    if mean > 0:
        kl += mean * log(mean / other)
    if mean < 1:
        kl += (1 - mean) * log((1 - mean) / (1 - other))
    return kl
