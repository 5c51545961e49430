"""Spans as Arize Phoenix gives them, in the form of an SDK's spans.

Its API lists spans under ``data`` with ``span_kind`` beside the attributes, its interface nests the
attributes (``{"llm": {"output_messages": [...]}}``), and its tables have a column for each
(``attributes.tool.name``, ``context.span_id``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.environments.calls.steps import unfolded

KIND = "openinference.span.kind"
_KINDS = frozenset(
    [
        "TOOL",
        "LLM",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "RERANKER",
        "GUARDRAIL",
        "EVALUATOR",
        "PROMPT",
    ]
)
_NESTED = ("openinference", "llm", "tool", "input", "output", "session")


def span_of(record: Any) -> Any:
    """A span with flat attributes and its context; anything else as it is."""
    if not isinstance(record, Mapping) or record.get("name") is None:
        return record
    if "context.span_id" in record:
        record = _of_columns(record)
    kind = record.get("span_kind", record.get("spanKind"))
    attributes = unfolded(record.get("attributes"))
    of_phoenix = isinstance(kind, str) and kind.upper() in _KINDS
    if not isinstance(attributes, Mapping) or not (of_phoenix or any(name in attributes for name in _NESTED)):
        return record
    flat = dict(_flat(attributes, ""))
    if of_phoenix:
        flat.setdefault(KIND, kind)
    status = record.get("status_code", record.get("statusCode"))
    return {**record, "attributes": flat, "status": record.get("status") or {"code": status}}


def _of_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table of spans. Columns for which the span has no value are empty."""
    span: dict[str, Any] = {"context": {}, "attributes": {}}
    for name, value in row.items():
        group, _, rest = name.partition(".")
        if group in ("context", "attributes") and rest and value is not None:
            span[group][rest] = value
        elif group not in ("context", "attributes"):
            span[name] = value
    if isinstance(span["attributes"].get(KIND), str):
        span.setdefault("span_kind", span["attributes"][KIND])
    return span


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything in attributes, including objects and lists."""
    inside: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, Mapping):
        inside = iter(value.items())
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        inside = iter(enumerate(value))
    for name, held in inside:
        below = f"{path}.{name}" if path else str(name)
        yield below, held
        yield from _flat(held, below)
