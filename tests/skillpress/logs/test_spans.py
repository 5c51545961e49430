"""Spans of tracing libraries are the agent's steps and nothing else, whatever the recorder names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skillpress.logs.fields import Wanted
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.spans import Span, is_around_tools, steps_of, tool_in
from tests.support.integrations import foreign_records as foreign
from tests.support.integrations.foreign_records import CALLS, DONE, RUN, read, run_in


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("running tool: search", "search"), ("execute_tool search", "search"),
        ("Running tool search", "search"), ("tool: search", "search"),
        ("tool_call:search", "search"), ("tools/call search", "search"),
        ("executing tool: search", "search"), ("search", None), ("toolbox", None), ("running tool", None),
        ("tool", None), ("my tool: x", None),
    ],
)  # fmt: skip
def test_the_name_of_a_span_may_hold_the_tools_name(name: str, tool: str | None) -> None:
    assert tool_in(name) == tool


@pytest.mark.parametrize(
    "name", ["running 2 tools", "running tools", "running tools: a, b", "Executing tools"]
)
def test_a_span_around_tools_names_none(name: str) -> None:
    assert is_around_tools(name)


def observed(number: int, kind: str, name: str, parent: str | None = "o0", **more: Any) -> dict[str, Any]:
    start = f"2026-03-01T10:00:{number:02}.000Z"
    return {"id": f"o{number}", "traceId": "tr-1", "type": kind, "name": name, "startTime": start,
            "parentObservationId": parent, "level": "DEFAULT", "input": None,
            "output": None, **more}  # fmt: skip


def instrumented() -> list[dict[str, Any]]:
    """A run that an agent library's spans gave Langfuse: parts, spans around tools, tools in attributes."""
    found = [observed(0, "AGENT", "agent run", None, input="Mend gcd.", output=DONE)]
    for number, (tool, arguments, answer) in enumerate(CALLS, 1):
        part = {"type": "tool_call", "id": f"c{number}", "name": tool, "arguments": arguments}
        said = [{"role": "assistant", "parts": [part], "finish_reason": "tool_call"}]
        found.append(observed(10 * number, "GENERATION", "chat small", output=said))
        found.append(observed(10 * number + 1, "TOOL", "running 1 tool", input=None))
        attributes = {
            "gen_ai.tool.name": tool,
            "tool_arguments": json.dumps(arguments),
            "tool_response": answer,
        }
        given: dict[str, Any] = {"metadata": {"attributes": attributes}}
        if number > 1:  # older libraries give the tool in the span's name alone
            given = {"input": arguments, "output": answer}
        name = "running tool" if number == 1 else f"running tool: {tool}"
        kind = "SPAN" if number == 2 else "TOOL"
        found.append(observed(10 * number + 2, kind, name, f"o{10 * number + 1}", **given))
    said = [{"role": "assistant", "parts": [{"type": "text", "content": DONE}]}]
    return [*found, observed(50, "GENERATION", "chat small", output=json.dumps(said))]


def test_spans_around_tools_are_no_steps_and_tools_have_their_own_names() -> None:
    assert run_in(read(instrumented())) == RUN
    assert run_in(read({"id": "tr-1", "observations": instrumented(), "scores": []})) == RUN


PHANTOMS = {
    "an answer without content": observed(
        60, "GENERATION", "chat", output={"role": "assistant", "content": ""}
    ),
    "an answer of null": observed(60, "GENERATION", "chat", output=None),
    "a thought alone": observed(
        60,
        "GENERATION",
        "chat",
        output={"role": "assistant", "content": [{"type": "thinking", "thinking": "?"}]},
    ),
    "an answer of a call alone": observed(
        60, "GENERATION", "chat", output={"parts": [{"functionCall": {"name": "search", "args": {}}}]}
    ),
    "the same call of the model again": observed(
        51, "GENERATION", "OpenAI-generation", "o50", output={"role": "assistant", "content": DONE}
    ),
    "an observation that is written again": {**instrumented()[-1]},
    "a judge": observed(60, "EVALUATOR", "judge"),
    "a retriever": observed(60, "RETRIEVER", "documents", output=["x"]),
    "an event": observed(60, "EVENT", "log", output="x"),
}


@pytest.mark.parametrize("name", PHANTOMS)
def test_an_observation_that_is_no_step_adds_none(name: str) -> None:
    assert run_in(read([*instrumented(), PHANTOMS[name]])) == RUN


def test_what_a_judge_says_is_left_out_and_counted() -> None:
    judge = [
        observed(60, "EVALUATOR", "judge"),
        observed(61, "GENERATION", "chat", "o60", output="Yes, solved."),
    ]
    found = read([*instrumented(), *judge])
    assert run_in(found) == RUN and found.left_out == {"spans of evaluators and guardrails": 1}


@pytest.mark.parametrize(
    "output",
    [
        {"parts": [{"text": DONE}]}, {"role": "model", "parts": [{"text": DONE}]},
        [{"parts": [{"text": DONE}]}], {"role": "assistant", "content": "", "parts": [{"text": DONE}]},
        [{"role": "model", "content": {"parts": [{"text": DONE}]}}],
        {"content": {"parts": [{"text": DONE}], "role": "model"}}, {"content": DONE}, DONE,
        {"candidates": [{"content": {"parts": [{"text": DONE}]}}]}, [{"type": "text", "text": DONE}],
        {"content": [{"type": "text", "text": DONE}]}, {"choices": [{"message": {"content": DONE}}]},
    ],
)  # fmt: skip
def test_an_answer_of_any_shape_is_its_words(output: Any) -> None:
    for form in (output, output if isinstance(output, str) else json.dumps(output)):
        assert run_in(read([observed(1, "GENERATION", "chat", None, output=form)])) == [(None, DONE, "")]


def test_a_structured_answer_is_words() -> None:
    (found,) = read([observed(1, "GENERATION", "chat", None, output={"verdict": "done"})]).steps
    assert (found.tool, found.content) == (None, '{"verdict": "done"}')


def spans_of_phoenix() -> list[dict[str, Any]]:
    """The spans of a run as Phoenix's API lists them."""

    def span(
        number: int, kind: str, name: str, parent: str | None = "s0", **attributes: Any
    ) -> dict[str, Any]:
        return {
            "id": f"U3Bhbjo{number}", "name": name, "context": {"trace_id": "t1", "span_id": f"s{number}"},
            "span_kind": kind, "parent_id": parent, "start_time": f"2026-03-01T10:00:{number:02}+00:00",
            "end_time": "2026-03-01T10:01:00+00:00", "status_code": "OK", "status_message": "", "events": [],
            "attributes": {name.replace("__", "."): value for name, value in attributes.items()},
        }  # fmt: skip

    found = [span(0, "AGENT", "agent", None, session__id="gcd")]
    call = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
    for number, (tool, arguments, answer) in enumerate(CALLS, 1):
        said = {f"{call}.name": tool, f"{call}.arguments": json.dumps(arguments)}
        found.append(span(10 * number, "LLM", "ChatCompletion", llm__model_name="small", **said))
        found.append(
            span(10 * number + 1, "TOOL", f"running tool: {tool}", input__value=json.dumps(arguments),
                 output__value=answer)
        )  # fmt: skip
    said = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": DONE}
    return [*found, span(50, "LLM", "ChatCompletion", **said)][::-1]


def nested(span: dict[str, Any]) -> dict[str, Any]:
    """The same with attributes inside one another, as Phoenix's interface shows them."""
    inside: dict[str, Any] = {"openinference": {"span": {"kind": span["span_kind"]}}}
    for path, value in span["attributes"].items():
        held: Any = inside
        *above, last = path.split(".")
        for name, below in zip(above, [*above[1:], last], strict=True):
            if isinstance(held, list):
                held += [{}] * (int(name) + 1 - len(held))
                held = held[int(name)]
            else:
                held = held.setdefault(name, [] if below.isdecimal() else {})
        held[last] = value
    plain = {key: value for key, value in span.items() if key not in ("span_kind", "id")}
    return {**plain, "attributes": json.dumps(inside)}


def columns(span: dict[str, Any]) -> dict[str, Any]:
    """The same as a row of a table of spans."""
    row = {f"context.{name}": value for name, value in span["context"].items()}
    row |= {f"attributes.{name}": value for name, value in span["attributes"].items()}
    row["attributes.openinference.span.kind"] = span["span_kind"]
    return row | {key: value for key, value in span.items() if key not in ("context", "attributes", "id")}


FORMS = {
    "data": lambda spans: {"data": spans, "next_cursor": None},
    "spans": lambda spans: {"spans": spans},
    "a list": list,
    "nested": lambda spans: [nested(span) for span in spans],
    "columns": lambda spans: [columns(span) for span in spans],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_spans_of_phoenix_are_the_run(form: str, tmp_path: Path) -> None:
    other = [{**span, "context": {**span["context"], "trace_id": "t2"}} for span in spans_of_phoenix()]
    (tmp_path / "log").write_text(json.dumps(FORMS[form]([*spans_of_phoenix(), *other])))
    log = read_log([tmp_path / "log"], NameProjection(), Wanted(), 0.0)
    traces = [trace for _, trace in traces_at(log, Wanted(), [0, 1])]
    assert [run_in(trace) for trace in traces] == [RUN, RUN] and [trace.task for trace in log.traces] == [
        "gcd",
        "gcd",
    ]


def test_a_table_of_spans_has_empty_columns(tmp_path: Path) -> None:
    pl.DataFrame([columns(span) for span in spans_of_phoenix()], infer_schema_length=None).write_parquet(
        tmp_path / "spans"
    )
    log = read_log([tmp_path / "spans"], NameProjection(), Wanted(), 0.0)
    assert [run_in(trace) for _, trace in traces_at(log, Wanted(), [0])] == [RUN]


@pytest.mark.parametrize("make", [foreign.otlp_spans, foreign.langfuse_observations])
def test_a_list_with_the_records_of_two_runs_is_two_runs(make: Any, tmp_path: Path) -> None:
    again = json.loads(json.dumps(make()).replace("5b8e", "5b8f").replace("tr-1", "tr-2"))
    (tmp_path / "log").write_text(json.dumps([*make(), *again]))
    log = read_log([tmp_path / "log"], NameProjection(), Wanted(), 0.0)
    assert [trace.steps for trace in log.traces] == [4, 4]


def test_a_span_inside_itself_ends() -> None:
    spans = [Span("a", "b", "tool", 0.0, tool="x"), Span("b", "a", "other", 1.0)]
    assert len(steps_of(spans)[0]) <= 1
