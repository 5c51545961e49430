"""φ for logs: the skill of each step.

Without rules a step's skill is the tool that it calls. In a log without tool calls, such as one of our text
environments, it is the first word of the action. In a log with tools, words between calls have no skill
unless the user asks for their first words. Rules (``rules.py``) replace all of this. A step usually has one
skill; one that runs several shell commands may have one for each.

Names come from the log, so their number is limited. While reading, the first ``NAMES_HELD`` names are kept
apart, and at the end the ``MOST_SKILLS`` most frequent form the alphabet. Steps with another name have no
skill.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from skillpress.environments.calls.steps import TraceStep, action_of
from skillpress.logs.words import Words

Labels = tuple[str, ...]
"""The labels of one step, in order; empty for a step without a skill."""

NAMES_HELD, MOST_SKILLS = 4096, 200
LONGEST_NAME = 80
WORDS = "\0"
"""Marks a label as a word, not a tool, while a log is read."""

_FIRST_WORD = re.compile(r"[\s\W]*([\w.:-]*\w)")
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+")


class TraceProjection(Protocol):
    """Gives a trace's steps their skills."""

    def __call__(self, steps: Sequence[TraceStep]) -> list[Labels]:
        """The labels of each step. They are final after :meth:`settle` has seen them."""
        ...

    def settle(self, counts: Mapping[str, int]) -> dict[str, str]:
        """Map the labels of a whole log to its skills, in the alphabet's order; labels missing from the
        result have no skill. ``counts`` says how often each label occurred.
        """
        ...


class NameProjection:
    """A step's skill is its tool, or the first word of its action.

    Args:
        take: ``first`` for the first words of actions also beside tools, ``none`` for no words at all.

    Attributes:
        words: statistics of the steps in words.
    """

    def __init__(self, take: str | None = None) -> None:
        self.words, self._take = Words(), take
        self._labels: dict[str, Labels] = {}
        self._carried_out: set[str] = set()

    def __call__(self, steps: Sequence[TraceStep]) -> list[Labels]:
        """See ``TraceProjection``; a label from words begins with ``WORDS``."""
        return [self._labels_of(step) for step in steps]

    def settle(self, counts: Mapping[str, int]) -> dict[str, str]:
        """The most frequent tools, by name. If the log has no tools: the most frequent first words of actions
        that were carried out at least once, by name."""
        tools = {label: count for label, count in counts.items() if not label.startswith(WORDS)}
        words = {label: count for label, count in counts.items() if label in self._carried_out}
        kept = {"first": {**tools, **words}, "none": tools}.get(self._take or "", tools or words)
        ranked = sorted(kept.items(), key=lambda entry: (-entry[1], entry[0]))
        return {
            label: label.removeprefix(WORDS) for label in sorted(name for name, _ in ranked[:MOST_SKILLS])
        }

    def _labels_of(self, step: TraceStep) -> Labels:
        if step.tool is None:
            self.words.add(step)
        if not (name := name_of(step)):
            return ()
        known = self._labels.get(name, ())
        if not known and len(self._labels) < NAMES_HELD:
            mark = WORDS if name.startswith(WORDS) else ""
            known = self._labels[name] = (mark + shortened(name.removeprefix(mark)),)
        if known and not step.refused:
            self._carried_out.add(known[0])
        return known


def name_of(step: TraceStep) -> str:
    """The tool, or ``WORDS`` and the first word; empty if the step has neither."""
    if step.tool is not None:
        return step.tool.removeprefix(WORDS)
    found = _FIRST_WORD.match(action_of(step)[:200].lower())
    return WORDS + found[1] if found else ""


def shortened(name: str) -> str:
    """A name as one short visible word; different names stay different."""
    visible = _UNSEEN.sub("_", name)
    if visible == name and len(name) <= LONGEST_NAME:
        return name
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{visible[: LONGEST_NAME - 9]}~{mark}"
