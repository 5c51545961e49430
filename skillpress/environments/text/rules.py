"""φ as data: an ordered table of action patterns and their skills (Table 3).

A pattern consists of an action's words, where ``*`` matches one or more words. The first matching pattern
decides, so ``examine cookbook`` comes before ``examine *`` and ``eat meal`` before ``eat *``. An action that
matches no pattern has no skill. The rules read only the action: an action that the environment refused still
has its skill. (If skills depend on more, such as whether something is carried, the environment calls
:meth:`RuleTable.skill` of the table for its state.)

:class:`VerbProjection` is for environments without such a table. K = |Σ| enters the description length and
its bound, so Σ must be fixed before an episode is played: the verbs are given, and a word that an untrained
policy makes up gets no label instead of a new symbol.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from skillpress.core.trajectory import Skills, Task, Trajectory


class ActionProjection(ABC):
    """A projection whose skills depend only on the actions: each has one, or none."""

    alphabet: tuple[str, ...]

    @abstractmethod
    def skill(self, action: str) -> str | None:
        """The skill of an action; None if it has none."""

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        """Each step has at most one skill."""
        return one_each(map(self.skill, trajectory.actions))


class RuleTable(ActionProjection):
    """A projection whose skills depend only on the action's words."""

    def __init__(self, rules: Sequence[tuple[str, str]]) -> None:
        """``rules``: (pattern, skill), the most specific first."""
        self._rules = tuple((_compiled(pattern), skill) for pattern, skill in rules)
        self.alphabet: tuple[str, ...] = tuple(dict.fromkeys(skill for _, skill in rules))

    def skill(self, action: str) -> str | None:
        """The skill of the first matching pattern; None if none matches."""
        words = _normal(action)
        return next((skill for pattern, skill in self._rules if pattern.fullmatch(words)), None)


class VerbProjection(ActionProjection):
    """An action's skill is its first word, if that is one of the given verbs."""

    def __init__(self, verbs: Iterable[str]) -> None:
        self.alphabet: tuple[str, ...] = tuple(dict.fromkeys(verb.lower() for verb in verbs))
        self._known = frozenset(self.alphabet)

    def skill(self, action: str) -> str | None:
        """The verb; None if it is not in the alphabet."""
        verb = verb_of(action)
        return verb if verb in self._known else None


def one_each(skills: Iterable[str | None]) -> tuple[Skills, ...]:
    """φ of steps of which each has one skill, or None if it has no skill."""
    return tuple(() if skill is None else (skill,) for skill in skills)


def verb_of(action: str) -> str:
    """The first word in lower case; empty for an empty action."""
    return _normal(action).partition(" ")[0]


def _normal(action: str) -> str:
    return " ".join(action.lower().split())


def _compiled(pattern: str) -> re.Pattern[str]:
    words = (r"\S+(?: \S+)*" if word == "*" else re.escape(word) for word in _normal(pattern).split())
    return re.compile(" ".join(words))
