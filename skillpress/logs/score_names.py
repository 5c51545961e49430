"""The meaning of a score's name: success of a run, its reward, or neither.

Only names that mean success (``resolved``, ``answer_correctness``) or reward decide by themselves whether a
run succeeded. ``score`` and exact matches of answers decide if nothing else was measured. Every other score
may be better when higher or when lower: ``hallucination``, ``toxicity``, ``latency``.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Meaning(IntEnum):
    """The meaning of a score's name; a greater meaning decides before a lesser one."""

    OTHER = 0
    ALONE = 1
    """Decides only if nothing else was measured."""
    REWARD = 2
    SUCCESS = 3


_SUCCESS = frozenset(
    """
    success successful successfully succeeded succeed solved resolved passed pass won win correct correctness
    accuracy accurate acc target
    """.split()  # noqa: SIM905  a list of words is longer, and no clearer
)
_REWARD = frozenset(["reward", "rewards"])
_ALONE = frozenset(
    [
        ("exact", "match"), ("em",), ("match",), ("includes",), ("exact",), ("pattern",), ("choice",),
        ("math",), ("model", "graded", "qa"), ("model", "graded", "fact"),
    ]
)  # fmt: skip
"""Names of scorers, inspect's among them, that compare an answer with the right one."""
_COMPLETED = frozenset(["completion", "completed", "complete", "achieved", "fulfilled", "achievement"])
"""Words that mean success only together with a task or a goal. Alone they may only mean that the run has
ended."""
_FILLERS = frozenset(
    """
    is was has did the a of on at by for task tasks goal test tests final overall total agent episode run all
    eval evals evaluation evaluator metric score scores value rate answer binary mean avg outcome result
    results response trajectory end k
    """.split()  # noqa: SIM905
)
_LOWER = frozenset(
    """
    hallucination hallucinations hallucinated toxicity toxic bias biased refusal refusals refused refuse harm
    harmful harmfulness error errors errored failure failures failed fail fails incorrect incorrectness
    unresolved unsolved wrong lost loss cost costs latency duration leak leaked leakage pii violation
    violations violated unsafe risk injection jailbreak jailbroken attack misuse stereotype stereotypes
    stereotyping profanity profane insult insulting hate violence violent sexual criminality maliciousness
    malicious misogyny controversiality insensitivity penalty penalties invalid timeout timeouts crash crashed
    truncated aborted sycophancy sycophantic deception deceptive perplexity wer cer rmse mae mse regret
    repetition redundancy redundant rude inappropriate cheating cheated hacking overlong
    """.split()  # noqa: SIM905
)
_HIGHER = frozenset(
    """
    faithfulness faithful groundedness grounded relevancy relevance relevant precision recall f1 bleu rouge
    ndcg mrr helpfulness helpful coherence coherent conciseness similarity adherence quality safety safe
    completeness factuality factual fluency consistency alignment usefulness useful satisfaction rating grade
    includes match exact correct correctness accuracy readability creativity politeness thoroughness
    """.split()  # noqa: SIM905
)
_ENDS = frozenset(
    ["exit_status", "status", "subtype", "stop_reason", "finish_reason", "termination_reason", "exit_reason",
     "terminated_by", "end_reason"]
)  # fmt: skip
_HOLDERS = frozenset(
    """
    score scores rewards reward metric metrics metricsdata scorersdata evaluation evaluations eval evals
    evaluator evaluators feedback feedbacks feedbackstats feedbackscores assessment assessments annotation
    annotations grade grades grading gradingresult namedscores judgement judgment judge rewardinfo outcome
    outcomes verification verifier verifierresult testresult checks scorers
    """.split()  # noqa: SIM905
)
_OPENED = frozenset(["info", "extra", "result", "results", "report", "metadata", "summary"])
"""Fields that may hold a score among other things."""
_SETTINGS = frozenset(
    """
    id idx index epoch step steps seed trial trials turn turns round version number num count n length token
    tokens time date stream store temperature top max min size rank split fold demo sidechain meta weight line
    group rollout attempt attempts sample batch page port level depth parallel enabled cached threshold
    created updated timestamp difficulty position priority year month day finished done ended complete
    completed
    """.split()  # noqa: SIM905
)
_WORDS = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])|\d+")
_VALUES = frozenset(
    ["value", "score", "avg", "mean", "total", "overall", "reward", "stringValue", "string_value"]
)
"""Keys under which a score keeps its value."""


def leaf(path: str) -> str:
    """The name at the end of a path that says what is measured: ``bias`` of ``scores.bias.value``."""
    names = path.split(".")
    while len(names) > 1 and (names[-1] in _VALUES or names[-1].isdecimal()):
        if names[-1] in ("score", "reward") and squeezed(names[-2]) in _HOLDERS:
            break
        names.pop()
    return names[-1]


@lru_cache(maxsize=4096)
def meaning(path: str) -> Meaning:
    """The meaning of the score at a path, by its name."""
    every = words_of(leaf(path))
    if lower_is_better(path):
        return Meaning.OTHER
    words = tuple(word for word in every if word not in _FILLERS and not word.isdecimal())
    of_a_task = bool({"task", "goal"} & set(every)) and set(words) <= _COMPLETED
    if words and (set(words) <= _SUCCESS or of_a_task):
        return Meaning.SUCCESS
    if words and set(words) <= _REWARD:
        return Meaning.REWARD
    is_score = not words and bool({"score", "scores"} & set(every))
    return Meaning.ALONE if is_score or every in _ALONE else Meaning.OTHER


@lru_cache(maxsize=4096)
def lower_is_better(path: str) -> bool:
    """Whether the name says that lower is better: ``toxicity``, but not ``non_toxic``."""
    words = words_of(leaf(path))
    return any(
        word in _LOWER and (place == 0 or words[place - 1] not in ("no", "non", "not", "without", "un"))
        for place, word in enumerate(words)
    )


@lru_cache(maxsize=4096)
def is_measure(path: str) -> bool:
    """Whether the name says that something is measured: it has a meaning or a direction, or it is among
    scores.
    """
    above = path.split(".")[:-1]
    words = set(words_of(leaf(path)))
    held = any(is_holder(name) for name in above) and not words & _SETTINGS
    scored = bool(words & (_HIGHER | _REWARD | {"score", "scores"}))
    return held or scored or meaning(path) > Meaning.OTHER or lower_is_better(path)


def higher_is_better(path: str) -> bool:
    """Whether the name says that higher is better. For many names neither direction is known."""
    known = meaning(path) > Meaning.OTHER or bool(set(words_of(leaf(path))) & (_HIGHER | _LOWER))
    return known and not lower_is_better(path)


def says_how_it_ended(path: str) -> bool:
    """Whether the field says how a run ended, such as ``exit_status``. A run may end well without success."""
    return path.rpartition(".")[2] in _ENDS


def is_holder(name: str) -> bool:
    """Whether a field of this name holds scores."""
    return squeezed(name) in _HOLDERS


def may_hold(name: str) -> bool:
    """Whether a field of this name may hold scores, among other things."""
    return squeezed(name) in _OPENED or is_holder(name)


def is_setting(name: str) -> bool:
    """Whether a field of this name counts, names or configures something."""
    return bool(set(words_of(name)) & _SETTINGS)


def squeezed(name: str) -> str:
    """A name without marks and capitals: ``metricsdata`` for ``metricsData`` and ``metrics_data``."""
    return re.sub(r"[\W_]", "", name).lower()


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: (tool, use) of ``toolUse``, ``tool_use`` and ``Tool Use``."""
    return tuple(word.lower() for word in _WORDS.findall(name))
