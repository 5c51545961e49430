"""A run that many records make up, and a record that holds many runs, are counted and read again as runs.

The tests have a format of their own, in which a record says openly what it is. So these laws depend on no
reader.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skillpress.environments.calls.steps import TraceStep
from skillpress.logs import formats
from skillpress.logs.fields import Wanted, dig, success_field
from skillpress.logs.formats import Format
from skillpress.logs.joining import BESIDE
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import ModelCallPlace, Trace, TracesError


def recognises(record: Any) -> bool:
    if isinstance(record, list):
        return bool(record) and all(part(each) is not None for each in record)
    return isinstance(record, dict) and "did" in record


def read(record: Any) -> Trace:
    """``did`` are the steps; a call also has ``asked``, how many of them are from its history."""
    if isinstance(record, list):
        return Trace("", tuple(TraceStep(event["event"], {}) for event in record), task=record[0]["run"])
    steps = tuple(TraceStep(name, {"number": number}) for number, name in enumerate(record["did"]))
    if "asked" not in record:
        return Trace(record.get("name", ""), steps)
    said = [hash(("start", record.get("start", "")))]
    said += [hash((step.tool, step.content["number"])) for step in steps]
    asked = record["asked"]
    return Trace(
        record.get("name", ""),
        steps,
        left_out={"demonstration messages": 1},
        call=ModelCallPlace(
            record.get("session", ""), tuple(said[: asked + 1]), answer=said[-1], earlier=asked
        ),
    )


def several(value: Any) -> Sequence[Any] | None:
    return value["runs"] if isinstance(value, dict) and "runs" in value else None


def part(value: Any) -> str | None:
    return value["run"] if isinstance(value, dict) and "event" in value else None


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "FORMATS", (Format("test", recognises, read, dig, several, part),))


def call(*did: str, **more: Any) -> dict[str, Any]:
    """The last step is the answer."""
    return {"did": did, "asked": len(did) - 1, **more}


def event(run: str, name: str) -> dict[str, Any]:
    return {"run": run, "event": name}


def read_lines(path: Path, *records: Any, wanted: Wanted | None = None, compress: bool = False) -> Log:
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if compress else text)
    return read_log([path], NameProjection(), wanted or Wanted(), 0.0)


def again(log: Log) -> list[tuple[int, tuple[str | None, ...]]]:
    found = traces_at(log, Wanted(), range(len(log)))
    return sorted((position, tuple(step.tool for step in trace.steps)) for position, trace in found)


RUN = ("list", "edit", "test")


@pytest.mark.parametrize("compress", [False, True])
def test_calls_are_runs_and_each_run_is_read_again_whole(compress: bool, tmp_path: Path) -> None:
    log = read_lines(
        tmp_path / "log",
        call("list", session="a"),
        call("list", start="b"),
        call("list", "edit", session="a"),
        call("list", "edit", start="b"),
        call("list", "edit", "test", session="a"),
        {"did": RUN},
        call("submit", session="a", start="after a compaction"),
        compress=compress,
    )
    assert log.skills == [(*RUN, "submit"), ("list", "edit"), RUN]
    assert [trace.steps for trace in log.traces] == [4, 2, 3] and log.called == 9 and log.tools["list"] == 3
    assert again(log) == [(0, (*RUN, "submit")), (1, ("list", "edit")), (2, RUN)]
    assert log.first is not None and len(log.first.steps) == 4
    assert log.good_lines == 7 and log.formats == {"test": 3}
    assert log.left_out == {"demonstration messages": 3}, "once for each conversation, not for each call"


def test_a_run_may_be_in_several_files(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(call("list", session="a")))
    (tmp_path / "2.json").write_text(json.dumps(call("list", "edit", session="a")))
    (tmp_path / "3.json").write_text(json.dumps(call("submit", session="a", start="compacted")))
    log = read_log([tmp_path], NameProjection(), Wanted(), 0.0)
    assert log.skills == [("list", "edit", "submit")] and again(log) == [(0, ("list", "edit", "submit"))]


def test_what_is_beside_a_run_is_no_trace_and_is_counted(tmp_path: Path) -> None:
    log = read_lines(
        tmp_path / "log",
        call("list", session="a"),
        call("search", session="a", start="other"),
        call("list", "edit", session="a"),
    )
    assert log.skills == [("list", "edit")] and log.left_out[BESIDE] == 1


def test_the_last_outcome_that_a_call_says_is_the_runs(tmp_path: Path) -> None:
    log = read_lines(
        tmp_path / "log",
        call("list", session="a", solved=False),
        call("list", "edit", session="a", solved=True),
        call("list", "edit", "test", session="a"),
        wanted=Wanted(success=success_field("solved")),
    )
    assert [trace.success for trace in log.traces] == [True] and log.outcomes.fields["solved"].won == 1
    assert [trace.success for _, trace in traces_at(log, Wanted(), [0])] == [True]


@pytest.mark.parametrize("compress", [False, True])
def test_events_of_a_run_are_one_trace_although_they_are_mixed_with_others(
    compress: bool, tmp_path: Path
) -> None:
    log = read_lines(
        tmp_path / "log",
        event("a", "list"), event("b", "list"), {"did": RUN}, event("a", "edit"), event("b", "test"),
        compress=compress,
    )  # fmt: skip
    assert sorted(log.skills) == [("list", "edit"), RUN, ("list", "test")]
    assert sorted(steps for _, steps in again(log)) == sorted(log.skills)
    assert log.good_lines == 5 and sorted(trace.task for trace in log.traces) == ["", "a", "b"]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_of_several_runs_is_several_traces(indent: int | None, tmp_path: Path) -> None:
    whole = {"runs": [{"did": ["list"], "name": "1"}, {"did": ["list", "edit"], "name": "2"}]}
    (tmp_path / "log").write_text(json.dumps([whole, whole], indent=indent))
    log = read_log([tmp_path / "log"], NameProjection(), Wanted(), 0.0)
    assert log.skills == [("list",), ("list", "edit")] * 2
    assert [trace.name for _, trace in traces_at(log, Wanted(), [3])] == ["2"]


def test_an_empty_document_of_runs_says_so(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"runs": []}')
    with pytest.raises(TracesError, match="it is empty"):
        read_log([tmp_path / "log"], NameProjection(), Wanted(), 0.0)
