"""Logs of inspect: the samples of a JSON log, or the members of an ``.eval`` archive.

A sample is a run: its messages, and its scores as outcomes. inspect writes C, P, I and N for correct,
partial, incorrect and no answer. A scorer decides if its name means success, or if it is the only one and
compares the answer with the target (``outcome.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillpress.logs.chat import first_text, messages_in, messages_of_answer, trace_of
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig, seconds
from skillpress.logs.outcome import candidates_of, decided
from skillpress.logs.trace import Trace, UnreadableTraceError

_LETTERS: Mapping[str, bool | float] = {"C": True, "I": False, "P": 0.5, "N": False}


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
        raise UnreadableTraceError("the sample has no messages")
    trace = trace_of({}, read_conversation(messages or [], answer or ()))
    ended = decided(candidates_of(_scores(record)))
    model = dig(record, "eval.model") or dig(record, "output.model")
    return replace(
        trace,
        name=first_text(record, ("uuid",)) or f"{record.get('id')}/{record.get('epoch')}"[:200],
        task=first_text(record, ("id",)),
        version=str(model or "")[:200],
        time=seconds(record.get("started_at")) or seconds(dig(record, "eval.created")),
        **ended._asdict(),
    )


def field(record: Any, path: str) -> Any:
    """The value at a path. A score counts as its value; the letters C, I and P mean yes, no and a half."""
    value = dig(record, path)
    if isinstance(value, Mapping) and "value" in value:
        value = value["value"]
    return _LETTERS.get(value, value) if isinstance(value, str) else value


def _scores(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of what each scorer found."""
    scores = record.get("scores")
    if scores is None and isinstance(record.get("score"), dict):  # version 1 of the format
        yield "score", field(record, "score")
    for name in scores if isinstance(scores, dict) else ():
        value = field(record, f"scores.{name}")
        yield f"scores.{name}.value" if isinstance(value, dict) else f"scores.{name}", value
