"""Logs of inspect: the samples of a JSON log, or the members of an ``.eval`` archive.

A sample is a run: its messages, and its scores as outcomes. inspect writes C, P, I and N for correct,
partial, incorrect and no answer. If there are several scorers, the first whose value says yes or no
decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillpress.doors.traces.chat import first_text, messages_in, messages_of_answer, trace_of
from skillpress.doors.traces.conversation import read_conversation
from skillpress.doors.traces.fields import dig, seconds
from skillpress.doors.traces.outcome import Outcome, outcome_of
from skillpress.doors.traces.trace import Trace, UnreadableTraceError

_LETTERS: Mapping[Any, Outcome] = {
    "C": Outcome("", True, 1.0),
    "I": Outcome("", False, 0.0),
    "P": Outcome("", None, 0.5),
    "N": Outcome("", False, 0.0),
}


def recognises(record: Any) -> bool:
    """Whether the record is a sample."""
    if not isinstance(record, dict) or "epoch" not in record or not isinstance(record.get("messages"), list):
        return False
    return bool({"target", "scores", "score"} & record.keys())


def runs(value: Any) -> Sequence[Any] | None:
    """The samples of a log; None if it is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("eval"), dict) or "status" not in value:
        return None
    samples = value.get("samples")
    if not isinstance(samples, list):
        return []
    return [{"eval": value["eval"], **each} if isinstance(each, dict) else each for each in samples]


def read(record: Any) -> Trace:
    """The trace of a sample.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    messages = messages_in(record["messages"])
    answer = messages_of_answer(record.get("output")) if messages is None else ()
    if messages is None and not answer:
        raise UnreadableTraceError("a sample without messages")
    trace = trace_of({}, read_conversation(messages or [], answer or ()))
    ended = next(iter(sorted(_outcomes(record), key=lambda found: found.success is None)), Outcome())
    model = dig(record, "eval.model") or dig(record, "output.model")
    return replace(
        trace,
        name=first_text(record, ("uuid",)) or f"{record.get('id')}/{record.get('epoch')}"[:200],
        task=first_text(record, ("id",)),
        version=str(model or "")[:200],
        time=seconds(record.get("started_at")) or seconds(dig(record, "eval.created")),
        **ended._asdict(),
    )


def _outcomes(record: Mapping[str, Any]) -> Iterator[Outcome]:
    """What each scorer found."""
    scores = record.get("scores")
    if scores is None and isinstance(record.get("score"), dict):  # version 1 of the format
        scores = {"": record["score"]}
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        path = f"scores.{name}" if name else "score"
        if isinstance(value, str) and value in _LETTERS:
            yield _LETTERS[value]._replace(outcome=path)
        elif value is not None and not isinstance(value, list):
            found = outcome_of(path, value)
            if found.success is not None or found.score is not None:
                yield found
