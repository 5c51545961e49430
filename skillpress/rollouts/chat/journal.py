"""A file with the cost and the ending of a server's answers, written as they arrive.

It keeps the cost of an evaluation that is interrupted. It has one line of JSON for each answer and one for
each parameter that the server refused.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from skillpress.core.storage import named_disk_errors
from skillpress.rollouts.chat.outcomes import ModelAnswer, TokenUsage

COUNTS = tuple(field.name for field in fields(TokenUsage))
UNCOUNTED = "uncounted"
"""Key in the result of :func:`spent`: the number of answers for which the server did not count all tokens."""


class Journal:
    """A journal that many threads can write to."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()

    def answered(self, answer: ModelAnswer) -> None:
        """Record how an answer ended, and its token counts if the model was asked."""
        asked = answer.ended != "prompt_too_long"
        self._write({**(asdict(answer.usage) if asked else {}), "ended": answer.ended})

    def left_out(self, parameter: str) -> None:
        """Record that the server refuses a parameter."""
        self._write({"left_out": parameter})

    def _write(self, values: Mapping[str, Any]) -> None:
        line = json.dumps(values) + "\n"
        with self._lock, named_disk_errors(self._file):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line)


def spent(file: Path) -> dict[str, int]:
    """The totals over all uses of the file.

    ``requests`` is the number of answered requests, the token counts are the server's, and ``uncounted`` is
    the number of requests for which it did not count all tokens.
    """
    totals = dict.fromkeys(("requests", *COUNTS, UNCOUNTED), 0)
    for line in _lines(file):
        if COUNTS[0] in line:
            counts = [line[name] for name in COUNTS]
            totals["requests"] += 1
            totals[UNCOUNTED] += None in counts
            for name, count in zip(COUNTS, counts, strict=True):
                totals[name] += count or 0
    return totals


def endings(file: Path) -> Counter[str]:
    """How many answers ended in each way (``outcomes.Ended``)."""
    return Counter(line["ended"] for line in _lines(file) if "ended" in line)


def parameters_left_out(file: Path) -> tuple[str, ...]:
    """The names of the parameters that the server refused."""
    return tuple(sorted({line["left_out"] for line in _lines(file) if "left_out" in line}))


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines, except an unfinished last one that a killed process left."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for line in text.splitlines():
        with suppress(ValueError):
            yield json.loads(line)
