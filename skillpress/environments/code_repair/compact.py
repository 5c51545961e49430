"""Code repair for a policy trained from scratch, which cannot read programs: a page of listed changes as
features.

The features of a change are what it replaces and by what, in which kind of statement, and the result of the
visible tests. The prompt also shows how many tests pass, the page and the number of pages, and the last
actions. One prompt, with its sections:

    tests 1 of 3 first 1 at 7 page 2 of 3 did test ; edit 7 ;
    1 comparison if < <= new 2 comparison if < > same 3 variable return v0 v2 new ...

An answer is ``view 3``, ``edit 2`` (of the page), ``test`` or ``submit``, followed by ``<end>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.code_repair.actions import PAGE
from skillpress.environments.code_repair.environment import RepairState
from skillpress.environments.code_repair.mutations import (
    ASSIGNMENTS,
    COMPARISONS,
    CONNECTIVES,
    KINDS,
    MOST_CHANGES,
    OPERATORS,
    PLACES,
    TWINS,
    Change,
)
from skillpress.environments.text.prompts import last_turns, own_state
from skillpress.environments.text.words import UNKNOWN, ended_vocabulary

LARGEST = 30
"""The largest number that is shown unchanged; larger numbers are shown as this one."""
_VERBS = ("view", "edit", "test", "submit")
_SECTIONS = ("tests", "of", "first", "at", "page", "did", "left", ";")
_OUTCOMES = ("new", "worse", "same", "better", "all")
_SIGNS = ("+1", "-1", "drop", "swap", "not", "True", "False", "name", "number", "expression")
_HEADER = 15
"""Number of words before the last actions."""
_ACTION_WORDS = 3
_CHANGE_WORDS = 6


@dataclass(frozen=True)
class CompactRendering:
    """The prompt described in the module's docstring."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most :func:`longest` words, all of them from :func:`all_words`."""
        repair = own_state(state, RepairState)
        words = [*_header(repair), "did"]
        for turn in last_turns(state, self.history):
            words += [*_known(turn.action), ";"]
        return " ".join([*words, *_changes(repair)])

    def continuation(self, state: AgentState) -> str:
        """The current test results and the current page."""
        repair = own_state(state, RepairState)
        return " ".join([*_header(repair), *_changes(repair)])

    def response(self, action: str, info: Info) -> str:
        """The words of the action."""
        return action


def _header(repair: RepairState) -> list[str]:
    seen = {number: slot for slot, (number, _) in enumerate(repair.shown, 1)}
    return [
        "tests", _count(repair.passed), "of", _count(repair.visible), "first", _count(repair.passed_first),
        "at", _count(seen.get(repair.applied, 0)), "page", _count(repair.page), "of", _count(repair.pages),
        "left", _count(repair.max_steps - repair.steps),
    ]  # fmt: skip


def _changes(repair: RepairState) -> Iterator[str]:
    for slot, (number, change) in enumerate(repair.shown, 1):
        before, after = _features(change)
        yield from (str(slot), change.kind, change.place, before, after, _outcome(repair, number))


def _outcome(repair: RepairState, number: int) -> str:
    """The change's result in the visible tests, compared to the original faulty program."""
    passed, first = repair.tried.get(number), repair.passed_first
    if passed is None:
        return "new"
    if passed == repair.visible:
        return "all"
    if first is None or passed == first:
        return "same"
    return "better" if passed > first else "worse"


def _features(change: Change) -> tuple[str, str]:
    """Return (what is replaced, by what), in words of the vocabulary."""
    before, after = change.before, change.after
    match change.kind:
        case "offset":
            sign = {f"{before} + 1": "+1", f"{before} - 1": "-1"}.get(after, "drop")
            return _sort(before), sign
        case "number":
            return _number(before), "+1" if int(after) > int(before) else "-1"
        case "variable" | "arguments":
            return _sort(before), "swap" if change.kind == "arguments" else "name"
        case "negation":
            return "not", "drop"
        case "function":
            return _last(before), _last(after)
        case _:
            return before, after


def _sort(text: str) -> str:
    return "name" if text.isidentifier() else "expression"


def _number(text: str) -> str:
    return _count(int(text)) if text.isdecimal() else "number"


def _last(text: str) -> str:
    name = text.rpartition(".")[2]
    return name if name in _twin_names() else UNKNOWN


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else str(min(number, LARGEST))


def _known(action: str) -> list[str]:
    words = action.split()[: _ACTION_WORDS - 1]
    return [
        word if word in _VERBS or (word.isdecimal() and int(word[:9]) <= LARGEST) else UNKNOWN
        for word in words
    ]


def _twin_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in TWINS for name in pair))


def _operators() -> Iterator[str]:
    for table in (COMPARISONS, OPERATORS, CONNECTIVES):
        for before, others in table.values():
            yield from (before, *others)
    for before, others in ASSIGNMENTS.items():
        yield from (before, *others)


def all_words() -> tuple[str, ...]:
    """Every word of prompts and answers except ``END``, each once."""
    numbers = map(str, range(LARGEST + 1))
    operators = (word for operator in _operators() for word in operator.split())
    own = (*_VERBS, *_SECTIONS, *_OUTCOMES, *_SIGNS, *KINDS, *PLACES, *_twin_names(), UNKNOWN)
    return tuple(dict.fromkeys((*numbers, *operators, *own)))


def longest(history: int) -> int:
    """Number of words in the longest prompt; ``not in`` and ``is not`` are two words each."""
    return _HEADER + history * _ACTION_WORDS + PAGE * (_CHANGE_WORDS + 2)


def vocabulary(history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    assert MOST_CHANGES <= PAGE * LARGEST, "every page has a number"
    return ended_vocabulary(all_words(), longest(history), _HEADER + PAGE * (_CHANGE_WORDS + 2))
