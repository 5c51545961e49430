"""What a log writes several times counts once: growing rows, repeated calls, copied sessions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skillpress.logs.fields import Wanted
from skillpress.logs.log import COPIES, SILENT, Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import TracesError
from tests.support.integrations import foreign_records as foreign


def written(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def read(*paths: Path) -> Log:
    log = read_log(paths, NameProjection(), Wanted(), 0.0)
    again = [
        tuple(step.tool for step in trace.steps if step.tool)
        for _, trace in traces_at(log, Wanted(), range(len(log)))
    ]
    assert sorted(again) == sorted(log.skills), "what is read again is the same"
    return log


def turns(*tools: str, answered: bool = False) -> list[dict[str, Any]]:
    """A conversation that calls these tools, with the last answer or without it."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "do"}]
    for tool in tools:
        call = {"id": tool, "function": {"name": tool, "arguments": "{}"}}
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": tool, "content": "ok"})
    return said if answered else said[:-1]


def sharegpt(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts = ("".join(json.dumps(call["function"]) for call in each.get("tool_calls", ())) for each in said)
    return [
        {"from": {"user": "human", "assistant": "gpt", "tool": "tool"}[each["role"]],
         "value": f"<tool_call>{text}</tool_call>" if text else each["content"]}
        for each, text in zip(said, texts, strict=True)
    ]  # fmt: skip


SHAPES = {
    "messages": lambda said: {"messages": said},
    "conversations": lambda said: {"conversations": said},
    "ShareGPT": lambda said: {"conversations": sharegpt(said)},
    "JSON text": lambda said: {"trajectory": json.dumps(said)},
}
NAMES = ("run_id", "session_id", "trial_name", "episode_id", "rollout_id", "trajectory_id", "conversation_id")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("answered", [False, True], ids=["ends with a call", "ends with an answer"])
def test_rows_that_grow_are_one_run_in_any_order(shape: str, answered: bool, tmp_path: Path) -> None:
    grown = [turns(*"abc"[:length], answered=answered) for length in (1, 2, 3)]
    rows = [
        {**SHAPES[shape](said), "run_id": run, "task": "t", "episode": f"episode-{number}"}
        for run in ("r0", "r1")
        for number, said in enumerate(grown)
    ]
    for number, order in enumerate(itertools.islice(itertools.permutations(rows), 0, 720, 70)):
        log = read(written(tmp_path / f"{number}.jsonl", order))
        assert log.skills == [("a", "b", "c")] * 2 and [trace.steps for trace in log.traces] == [3, 3]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_run_joins_its_rows_and_keeps_others_apart(name: str, tmp_path: Path) -> None:
    rows = [{"conversations": turns(*"ab"[:length]), name: run} for length in (1, 2) for run in ("x", "y")]
    assert read(written(tmp_path / "log", rows)).skills == [("a", "b")] * 2


def test_rows_without_the_name_of_a_run_are_runs(tmp_path: Path) -> None:
    rows = [{"conversations": turns(*"ab"[:length]), "task_id": "t"} for length in (1, 2)]
    assert read(written(tmp_path / "log", rows)).skills == [("a",), ("a", "b")]


def test_runs_of_one_job_are_told_apart_by_their_trials(tmp_path: Path) -> None:
    rows = [
        {"conversations": turns(*tools), "run_id": "job", "trial_name": f"t{n}", "reward": n}
        for n, tools in enumerate(("a", "ab"))
    ]
    log = read(written(tmp_path / "log", rows))
    assert log.skills == [("a",), ("a", "b")] and [trace.success for trace in log.traces] == [False, True]


@pytest.mark.parametrize("reward", [[None, None, 1], [1, None, None], [1, 1, 1]])
def test_the_outcome_of_any_row_is_the_runs(reward: list[Any], tmp_path: Path) -> None:
    grown = [{"conversations": turns(*"abc"[: n + 1]), "run_id": "r", "reward": reward[n]} for n in range(3)]
    for rows in (grown, grown[::-1]):
        found = read(written(tmp_path / "log", rows))
        assert [trace.success for trace in found.traces] == [True]


def block(identity: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def answer(*identities: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": each, "content": each} for each in identities],
    }


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


LS, CAT = block("1", "ls", path="a"), block("2", "cat")
REPEATED = {
    "in the next message": ([said(LS), said(LS, CAT), answer("1", "2")], "ls cat"),
    "in three messages": ([said(LS), said(LS), said(LS), answer("1")], "ls"),
    "after another's answer": ([said(LS, CAT), answer("2"), said(LS), answer("1")], "ls cat"),
    "again after its answer": ([said(LS), answer("1"), said(LS), answer("1")], "ls ls"),
    "with other arguments": ([said(LS), said(block("1", "ls", path="b")), answer("1")], "ls ls"),
    "of another tool": ([said(LS), said(block("1", "cat")), answer("1")], "ls cat"),
    "without an id": ([said(block("", "ls")), said(block("", "ls")), answer("")], "ls ls"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_that_is_repeated_before_its_answer_counts_once(name: str, tmp_path: Path) -> None:
    messages, tools = REPEATED[name]
    log = read(written(tmp_path / "log", [{"messages": [foreign.TASK, *messages]}]))
    assert log.skills == [tuple(tools.split())]


def test_the_answer_belongs_to_the_one_call(tmp_path: Path) -> None:
    log = read(written(tmp_path / "log", [{"messages": [foreign.TASK, *REPEATED["in the next message"][0]]}]))
    assert log.first is None or [step.answer for step in log.first.steps] == ["1", "2"]
    items = [item for item in foreign.response_items() if item["type"] == "function_call"][:1] * 2
    log = read(written(tmp_path / "items", [{"input": [foreign.TASK, *items]}]))
    assert [trace.steps for trace in log.traces] == [1]


def line(
    session: str, uuid: str, *blocks: dict[str, Any], role: str = "assistant", **more: Any
) -> dict[str, Any]:
    content = list(blocks) or "do"
    return {
        "type": role, "sessionId": session, "uuid": uuid, "isSidechain": False, **more,
        "message": {"role": role, "content": content},
    }  # fmt: skip


def session(name: str, *tools: str, prefix: str = "u") -> list[dict[str, Any]]:
    begun = line(name, "task", role="user")
    return [begun, *(line(name, f"{prefix}{n}", block(f"{prefix}{n}", tool)) for n, tool in enumerate(tools))]


def forked(name: str, copied: Sequence[dict[str, Any]], *tools: str) -> list[dict[str, Any]]:
    copy = [
        {**each, "sessionId": name, "forkedFrom": {"sessionId": "A", "messageUuid": each["uuid"]}}
        for each in copied
    ]
    return [*copy, *session(name, *tools, prefix=name)[1:]]


A = session("A", "ls", "cat", "edit")


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
def test_a_forked_session_counts_its_copied_part_once(apart: bool, tmp_path: Path) -> None:
    fork = forked("B", A[:3], "test", "submit")
    files = (
        [written(tmp_path / "a", A), written(tmp_path / "b", fork)]
        if apart
        else [written(tmp_path / "a", [*A, *fork])]
    )
    log = read(*files)
    assert log.skills == [("ls", "cat", "edit"), ("test", "submit")] and log.left_out[COPIES] == 3
    assert log.bad_lines == 0 and log.good_lines == len(A) + len(fork)


def test_the_order_of_reading_does_not_change_how_many_steps_there_are(tmp_path: Path) -> None:
    files = [written(tmp_path / "a", A), written(tmp_path / "b", forked("B", A, "test"))]
    assert read(*files).steps == read(*files[::-1]).steps == 4
    assert read(*files[::-1]).skills == [("ls", "cat", "edit", "test")], "nothing is left of the first"


def test_a_session_that_is_a_copy_alone_is_no_run_and_not_bad(tmp_path: Path) -> None:
    log = read(written(tmp_path / "a", A), written(tmp_path / "b", forked("B", A)))
    assert log.skills == [("ls", "cat", "edit")] and log.left_out[COPIES] == 4 and not log.bad_lines


SUMMARY = {"type": "summary", "summary": "Mends gcd.", "leafUuid": "u2"}


def test_summaries_and_sessions_without_an_agent_are_not_bad_lines(tmp_path: Path) -> None:
    opened = [
        line("C", "c0", role="user"),
        {"type": "summary", "summary": "x", "sessionId": "D", "leafUuid": "y"},
    ]
    log = read(written(tmp_path / "a", [SUMMARY, SUMMARY, *A, SUMMARY, *opened]))
    assert log.skills == [("ls", "cat", "edit")] and not log.bad_lines
    assert log.left_out[SILENT] == 2
    with pytest.raises(
        TracesError, match=r"no trace was found in .*: the session has no answer of the agent"
    ):
        read(written(tmp_path / "b", [SUMMARY]))


def test_a_forked_session_of_codex_counts_its_copied_items_once(tmp_path: Path) -> None:
    first = foreign.codex()
    calls = [at for at, each in enumerate(first) if each["payload"].get("type") == "function_call"]
    meta = {"type": "session_meta", "payload": {"id": "s-3", "forked_from_id": "s-2"}}
    copy = [{**each, "timestamp": "2026-03-02T10:00:00Z"} for each in first[: calls[1] + 1]]
    called = {"type": "function_call", "name": "other", "arguments": "{}", "call_id": "new"}
    own = {"type": "response_item", "payload": called}
    log = read(written(tmp_path / "a", first), written(tmp_path / "b", [meta, *copy, own]))
    assert log.skills == [("search", "edit", "test"), ("other",)]
    assert log.left_out[COPIES] == sum(each["type"] == "response_item" for each in copy)
    assert [trace.name for _, trace in traces_at(log, Wanted(), [0, 1])] == ["s-2", "s-3"]
    apart = read(written(tmp_path / "c", [{**meta, "payload": {"id": "s-4"}}, *copy, own]))
    assert apart.skills == [("search", "edit", "other")], "a fork whose origin was not read is whole"
