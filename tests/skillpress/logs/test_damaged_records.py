"""Whatever is damaged in a record, it is read, refused by name, or belongs to no format."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from skillpress.environments.calls.steps import action_of, text_of
from skillpress.logs.fields import SuccessField, Wanted
from skillpress.logs.formats import FORMATS, format_of, part_of, read_record, runs_in
from skillpress.logs.projection import NameProjection
from skillpress.logs.trace import TracesError, UnreadableTraceError
from tests.support.integrations import foreign_records as foreign
from tests.support.integrations.foreign_records import OTHERS, RECORDS
from tests.support.integrations.trace_records import atif, chat, mlflow_trace, our_atif, our_mlflow_trace

MAKERS = {
    **{name: make for name, (_, make) in {**RECORDS, **OTHERS}.items()},
    "ATIF": atif,
    "chat": chat,
    "MLflow": mlflow_trace,
    "our ATIF": our_atif,
    "our MLflow": our_mlflow_trace,
    "a log of inspect": foreign.inspect_log,
    "OTLP": foreign.otlp_document,
    "a model call": lambda: {
        "id": "c",
        "session_id": "s",
        "messages": foreign.openai_messages()[:-1],
        "response": {"choices": [{"message": foreign.openai_messages()[-1]}]},
    },
}
_PHASES = (Phase.explicit, Phase.generate)
"""A damaged record is small enough to be read; making it smaller takes minutes."""
ODD = st.sampled_from(
    [
        None,
        0,
        1,
        -1,
        2.5,
        10**400,
        math.nan,
        math.inf,
        True,
        "",
        "x",
        "\ud800",
        "[1]",
        '{"name": 3}',
        "<tool_call>{",
        [],
        {},
        [1],
        [None],
        [[]],
        [{}],
        {"a": 1},
        {"role": "assistant"},
        [{"role": "assistant", "content": 3}],
    ]
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inside:
        yield (*above, key)
        yield from places(held, (*above, key))


@st.composite
def damaged(draw: st.DrawFn, make: Any) -> Any:
    """A record with one to three damages: something dropped, replaced, repeated, or put in another place."""
    record = copy.deepcopy(make())
    for _ in range(draw(st.integers(1, 3))):
        every = list(places(record))
        if not every:
            break
        inside = record
        *above, last = draw(st.sampled_from(every))
        for key in above:
            inside = inside[key]
        damage = draw(st.sampled_from(["drop", "odd", "repeat", "copy"]))
        if damage == "drop":
            del inside[last]
        elif damage == "odd":
            inside[last] = draw(ODD)
        elif damage == "repeat" and isinstance(inside, list):
            inside.insert(last, copy.deepcopy(inside[last]))
        else:
            other: Any = record
            for key in draw(st.sampled_from(every)):
                if not isinstance(other, dict | list) or (isinstance(other, list) and len(other) <= key):
                    break
                other = other.get(key) if isinstance(other, dict) else other[key]
            inside[last] = copy.deepcopy(other)
    return record


def try_to_read(record: Any) -> None:
    assert part_of(record) is None or isinstance(part_of(record), tuple)
    runs = runs_in(record)
    for run in [record] if runs is None else runs:
        known = format_of(run)
        if known is None:
            continue
        for wanted in (Wanted(), Wanted(SuccessField("reward", at_least=1.0), "id", "model", "created")):
            try:
                trace = read_record(known, run, wanted)
            except (UnreadableTraceError, TracesError):
                continue
            assert trace.success in (None, True, False)
            assert trace.time is None or math.isfinite(trace.time)
            assert trace.score is None or math.isfinite(trace.score)
            assert all(
                isinstance(text, str) for text in (trace.name, trace.task, trace.version, trace.outcome)
            )
            assert all(count > 0 for count in trace.left_out.values())
            assert trace.call is None or trace.call.earlier <= len(trace.steps)
            NameProjection()(trace.steps)
            for step in trace.steps:
                assert step.tool is None or isinstance(step.tool, str)
                action_of(step), text_of(step.answer)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=40, deadline=None, derandomize=True, phases=_PHASES)
@given(data=st.data())
def test_a_damaged_record_is_read_or_refused(name: str, data: st.DataObject) -> None:
    try_to_read(data.draw(damaged(MAKERS[name])))


VALUES = st.recursive(
    ODD | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "role", "type", "content", "id", "source", "attributes", "name"]),
            inside,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, derandomize=True, phases=_PHASES)
@given(record=VALUES)
def test_any_value_is_told_without_an_error(record: Any) -> None:
    try_to_read(record)
    for known in FORMATS:
        assert known.recognises(record) in (True, False)
