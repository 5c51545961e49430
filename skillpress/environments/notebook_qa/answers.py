"""Exact match and F1 of a short answer, by the rules published with HotpotQA and MuSiQue.

Both compare words after the same normalisation, and they differ in two special cases of F1:

- if one side is *yes*, *no* or *noanswer* and the other is not the same, HotpotQA gives 0 even if they
  share words (``no`` against ``no man's land``); MuSiQue has no such rule;
- if normalisation leaves nothing of one side (``The``), MuSiQue gives 1 if nothing is left of the other
  side either; HotpotQA always gives 0, even for an exact match.

A question's answers are aliases of one answer; the best score over them counts.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

POLAR = frozenset({"yes", "no", "noanswer"})
"""Answers to which HotpotQA gives full credit or none."""

F1Rule = Callable[[str, str], float]
"""Maps (prediction, one alias) to F1, from 0 to 1."""

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """Lower case, without ASCII punctuation and English articles, with single spaces. The steps are applied
    in this order, so ``U.S.`` becomes ``us`` and ``a.`` becomes empty. Punctuation of other scripts, accents
    and typographic hyphens stay, as in the published rules."""
    bare = answer.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def exact_match(predicted: str, answers: Sequence[str]) -> bool:
    """Whether the prediction equals one of the answers after normalisation; both rules agree on this."""
    return normalized(predicted) in map(normalized, _some(answers))


def f1(predicted: str, answers: Sequence[str], rule: F1Rule) -> float:
    """The best F1 over the answers, by HotpotQA's or MuSiQue's rule."""
    return max(rule(predicted, gold) for gold in _some(answers))


def hotpotqa_f1(predicted: str, gold: str) -> float:
    """HotpotQA's F1: full credit or none for *yes* and *no*, and 0 if there is nothing left to compare."""
    ours, theirs = normalized(predicted), normalized(gold)
    if ours != theirs and POLAR & {ours, theirs}:
        return 0.0
    return shared_words_f1(ours.split(), theirs.split())


def musique_f1(predicted: str, gold: str) -> float:
    """MuSiQue's F1: it compares only words; two answers of which nothing is left agree."""
    ours, theirs = normalized(predicted).split(), normalized(gold).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return shared_words_f1(ours, theirs)


_RULES: dict[str, F1Rule] = {"hotpotqa": hotpotqa_f1, "2wikimultihopqa": hotpotqa_f1}


def f1_rule(dataset: str) -> F1Rule:
    """The rule of a data set's own evaluation program. Data sets without one get MuSiQue's rule, which is
    SQuAD's."""
    return _RULES.get(dataset, musique_f1)


def shared_words_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 = 2 · shared / (words of one + words of the other). A repeated word counts as often as both sides
    have it."""
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2 * shared / (len(predicted) + len(gold)) if shared else 0.0


def has_answer(submitted: str | None) -> bool:
    """L0's 1[has answer]: an answer was submitted and it is not blank. None means that no answer was
    submitted."""
    return bool(submitted and submitted.strip())


def _some(answers: Sequence[str]) -> Sequence[str]:
    if not answers:
        raise ValueError("a question without answers cannot be scored")
    return answers
