"""Rollouts as two trainers of this field write them: verl's dumps and TRL's tables of completions.

verl (``trainer.rollout_data_dir``) writes a line for each sample: ``input`` and ``output`` as text, ``score``
and ``step``. TRL (``log_completions``) writes a table with ``step``, ``prompt``, ``completion``,
``advantage`` and a column for each reward, named after its function. A single reward is the outcome; of
several rewards, the one whose name means success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skillpress.environments.calls.steps import text_of
from skillpress.logs.chat import messages_in, trace_of
from skillpress.logs.chat_text import messages_of_text, opened
from skillpress.logs.fields import number
from skillpress.logs.outcome import FoundOutcome, candidates_of, decided, outcome_at
from skillpress.logs.read_by_paths import completed
from skillpress.logs.trace import Trace, UnreadableTraceError

_TRL = frozenset(["step", "prompt", "completion", "advantage", "image", "images"])
"""Columns of TRL's tables that are not rewards."""


class Verl:
    """verl's dumps."""

    @staticmethod
    def recognises(record: Any) -> bool:
        """Whether the record is a sample with its score."""
        return _has_texts(record, "input", "output") and {"score", "step"} <= record.keys()

    @staticmethod
    def read(record: Any) -> Trace:
        """The trace of a sample.

        Raises:
            UnreadableTraceError: the output is empty.
        """
        return _trace(record, record["input"], record["output"], outcome_at(record, ("score",)))


class Trl:
    """TRL's tables of completions."""

    @staticmethod
    def recognises(record: Any) -> bool:
        """Whether the record is a row with an advantage."""
        if not isinstance(record, dict) or not {"step", "prompt", "completion", "advantage"} <= record.keys():
            return False
        return isinstance(record["completion"], str) or messages_in(record["completion"]) is not None

    @staticmethod
    def read(record: Any) -> Trace:
        """The trace of a completion.

        Raises:
            UnreadableTraceError: the completion is empty, or a message cannot be read.
        """
        return _trace(record, record["prompt"], record["completion"], _rewarded(record))


def _has_texts(record: Any, *keys: str) -> bool:
    return isinstance(record, dict) and all(isinstance(record.get(key), str) for key in keys)


def _trace(record: Mapping[str, Any], prompt: Any, completion: Any, ended: FoundOutcome) -> Trace:
    asked, said = messages_in(prompt), messages_in(completion)
    begun = "" if asked is not None else opened(text_of(prompt))
    if asked is None:
        asked = messages_of_text(text_of(prompt).removesuffix(begun), speaker="user")
    if said is None:
        said = messages_of_text(begun + text_of(completion))
    if not said:
        raise UnreadableTraceError("an empty completion")
    step = number(record.get("step"))
    return replace(trace_of(record, completed(asked, said, tools=True)), time=step, **ended._asdict())


def _rewarded(record: Mapping[str, Any]) -> FoundOutcome:
    """The outcome by the only reward, or by the one whose name means success: the table has no weights."""
    rewards = [
        name for name, value in record.items() if name not in _TRL and isinstance(value, bool | int | float)
    ]
    if len(rewards) == 1:
        return outcome_at(record, rewards)
    return decided(candidates_of((name, record[name]) for name in rewards))
