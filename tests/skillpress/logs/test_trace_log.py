"""Files of every kind become one log; other records are counted, named and skipped."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.environments.calls.steps import action_of
from skillpress.logs import json_files
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import Bad, TracesError
from tests.support.integrations.trace_records import atif, chat, mlflow_trace

RUN = ("search", "edit", "test")


def read(*paths: Path, most_bad: float = 0.5):
    return read_log(paths, NameProjection(), Wanted(), most_bad)


def test_a_file_may_hold_several_formats(read_lines) -> None:
    found = read_lines(chat(), atif(), mlflow_trace(), chat())
    assert found.skills == [RUN] * 4 and found.alphabet == tuple(sorted(RUN))
    assert found.formats == {"chat completions": 2, "ATIF": 1, "MLflow traces": 1}
    assert found.left_out["runs of sub-agents"] == 1


@pytest.mark.parametrize("name", ["log.jsonl", "log.txt", "log"])
def test_a_files_name_decides_nothing(read_lines, name: str) -> None:
    assert read_lines(chat(), name=name).skills == [RUN]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("whole", [[chat(), atif()], {"traces": [mlflow_trace(), mlflow_trace()]}])
def test_a_document_holds_a_list_of_records(tmp_path: Path, whole: object, indent: int | None) -> None:
    (tmp_path / "all.json").write_text(json.dumps(whole, indent=indent))
    assert read(tmp_path / "all.json").skills == [RUN] * 2


@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_is_one_record(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "one.json").write_text(json.dumps(atif(), indent=indent))
    (tmp_path / "messages.json").write_text(json.dumps(chat()["messages"], indent=indent))
    assert read(tmp_path / "one.json", tmp_path / "messages.json").skills == [RUN] * 2


@pytest.mark.parametrize("indent", [None, 2])
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "marked.json"
    path.write_text(json.dumps([chat(), atif()], indent=indent), encoding="utf-8-sig")
    assert read(path).skills == [RUN] * 2


def test_half_a_surrogate_pair_is_replaced(read_lines) -> None:
    (trace,) = read_lines(chat(task_id="half \udcb2, whole \U0001f600")).traces
    assert trace.task == "half ?, whole \U0001f600"


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(
        gzip.compress(json.dumps(chat()).encode() + b"\n" + json.dumps(atif()).encode())
    )
    found = read(tmp_path / "log")
    assert found.skills == [RUN] * 2
    assert [action_of(trace.steps[0]) for _, trace in traces_at(found, Wanted(), [1])] == ["gcd"]


def test_a_compressed_file_that_breaks_off_is_named(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(chat(id=n)) + "\n" for n in range(2000)).encode())
    (tmp_path / "log.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    found = read(tmp_path / "log.jsonl.gz")
    assert 0 < len(found) < 2000 and "breaks off" in found.bad[-1].why


def test_bad_lines_are_counted_named_and_passed_over(read_lines, tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    later, deep = atif(schema_version="ATIF-v9.1"), "[[[" * 99_999
    found = read_lines(chat(), '{"messages": [', "", {"other": 1}, later, chat(), deep, most_bad=0.9)
    assert found.skills == [RUN] * 2 and found.bad_lines == 4
    assert [bad.number for bad in found.bad] == [2, 4, 5, 7], "an empty line is not bad"
    assert found.bad[1] == Bad(path, 4, "not a known format; its keys are other")
    assert found.bad[0].why.startswith("not JSON") and "ATIF-v9.1" in found.bad[2].why
    assert "nested too deeply" in found.bad[3].why or "not JSON" in found.bad[3].why


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(json.dumps(chat()).encode() + b"\n" + b'{"messages": "\xff"}\n')
    assert read(tmp_path / "log").bad[0].why == "not UTF-8 at byte 14"


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "LONGEST_LINE", 5000)
    lines = [json.dumps(chat()), '{"messages": "' + "x" * 20_000 + '"}', json.dumps(chat(id="last"))]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    found = read(tmp_path / "log")
    assert found.skills == [RUN] * 2 and [bad.number for bad in found.bad] == [2]
    assert [trace.name for _, trace in traces_at(found, Wanted(), [1])] == ["last"], (
        "it is found again behind it"
    )


def test_too_many_bad_lines_end_the_reading(read_lines) -> None:
    with pytest.raises(
        TracesError, match=r"2 of 3 lines are not traces, more than --most-bad 0\.1 allows.*line 1"
    ):
        read_lines("x", chat(), "y", most_bad=0.1)


def test_a_named_file_without_a_trace_is_refused(read_lines) -> None:
    with pytest.raises(TracesError, match=r"no trace was found in .*log\.jsonl.*line 1: .*keys are a"):
        read_lines({"a": 1}, {"a": 2})


def test_the_share_of_bad_lines_is_of_all_lines_wherever_they_lie(read_lines) -> None:
    bad = ["no JSON", '{"other": 1}'] * 100
    found = read_lines(*bad, *[chat()] * 2000, most_bad=0.1)
    assert len(found) == 2000 and found.bad_lines == 200 and found.bad[0].number == 1


def test_a_folder_is_searched_and_what_lies_beside_traces_is_no_bad_line(tmp_path: Path) -> None:
    for trial in ("a", "b"):
        (tmp_path / trial / "agent").mkdir(parents=True)
        (tmp_path / trial / "agent" / "trajectory.json").write_text(json.dumps(atif(), indent=1))
        (tmp_path / trial / "result.json").write_text('{"reward": 1}')
        (tmp_path / trial / "notes.txt").write_text("no JSON")
    found = read(tmp_path)
    assert found.skills == [RUN] * 2 and found.bad_lines == 0
    passed = [(Path(passed.file).name, passed.why) for passed in found.passed_over]
    assert (
        passed
        == [
            ("notes.txt", "not JSON: Expecting value: line 1 column 1 (char 0)"),
            ("result.json", "not a known format; its keys are reward"),
        ]
        * 2
    )


@pytest.mark.parametrize("make", [lambda folder: folder / "nothing", lambda folder: folder])
def test_nothing_to_read_says_what_is_right(tmp_path: Path, make) -> None:
    with pytest.raises(TracesError, match=r"no such file|no files were found in"):
        read(make(tmp_path))


def test_what_can_be_read_once_is_refused_and_in_a_folder_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("nowhere")
    with pytest.raises(TracesError, match=r"pipe\.jsonl: a pipe .* write it to a file"):
        read(tmp_path / "pipe.jsonl")
    with pytest.raises(TracesError, match="no such file"):
        read(tmp_path / "link.jsonl")
    (tmp_path / "log.jsonl").write_text(json.dumps(chat()))
    assert read(tmp_path).skills == [RUN]


def test_a_field_that_is_no_outcome_names_the_line(read_lines) -> None:
    with pytest.raises(TracesError, match=r"log\.jsonl, line 2: --success solved: 0\.5"):
        read_lines(chat(), chat(solved=0.5), wanted=Wanted(success=success_field("solved")))


def test_some_traces_are_read_again_with_all_that_they_hold(episode, tmp_path: Path) -> None:
    write_rollouts(tmp_path / "r", [episode(f"t{n}", 0, ["look", "go"], n % 2 == 0) for n in range(4)])
    (tmp_path / "log").write_text("".join(json.dumps(chat(id=f"c{n}")) + "\n" for n in range(3)))
    (tmp_path / "list").write_text(json.dumps([chat(id=f"l{n}") for n in range(3)]))
    found = read(tmp_path / "r", tmp_path / "log", tmp_path / "list")
    assert len(found) == 10 and found.parquet == [0]
    again = dict(traces_at(found, Wanted(), [8, 5, 3]))
    assert {position: trace.name or trace.task for position, trace in again.items()} == {
        3: "run-0/t3/0", 5: "c1", 8: "l1"
    }  # fmt: skip
    assert action_of(again[5].steps[0]) == "gcd"


def test_words_are_skills_only_where_nobody_calls_a_tool(read_lines) -> None:
    def said(*words: str) -> dict[str, object]:
        return {"messages": [{"role": "assistant", "content": word} for word in words]}

    assert read_lines(said("go to desk 1", "LOOK!", " - take it")).skills == [("go", "look", "take")]
    mixed = read_lines(said("go to desk 1"), chat())
    assert mixed.skills == [(), RUN]
    assert mixed.unlabelled == {"go": 1, "it": 1}


def test_words_that_were_never_carried_out_make_no_skill(episode, tmp_path: Path) -> None:
    write_rollouts(tmp_path / "r", [episode("t", 0, ["look", "!xyzzy", "!look"], True)])
    found = read(tmp_path / "r")
    assert (
        found.alphabet == ("look",) and found.skills == [("look", "look")] and found.unlabelled["xyzzy"] == 1
    )


def test_the_most_frequent_names_are_the_alphabet(read_lines, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillpress.logs import projection

    monkeypatch.setattr(projection, "MOST_SKILLS", 2)

    def calling(*tools: str) -> dict[str, object]:
        calls = [{"id": tool, "function": {"name": tool, "arguments": "{}"}} for tool in tools]
        return {"messages": [{"role": "assistant", "tool_calls": calls}]}

    found = read_lines(
        calling("a", "b"), calling("c", "b"), calling("c"), calling("a", "a", "\ud800" + "x" * 999)
    )
    assert found.alphabet == ("a", "b") or found.alphabet == ("a", "c")
    assert sum(found.unlabelled.values()) == 3
    assert max(map(len, found.unlabelled)) <= projection.LONGEST_NAME


def test_a_log_whose_steps_have_no_skill_can_still_be_looked_at(read_lines) -> None:
    found = read_lines({"messages": [{"role": "assistant", "content": "..."}]})
    assert found.skills == [()] and found.alphabet == () and found.unlabelled == {"": 1}
