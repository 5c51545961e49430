"""Outcomes come from a file of labels, or from a rule over the last call, where the log itself has none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.environments.calls.steps import TraceStep
from skillpress.logs.fields import Wanted
from skillpress.logs.labels import read_labels
from skillpress.logs.last_call import last_call
from skillpress.logs.trace import Trace, TracesError
from tests.support.integrations.trace_records import chat

ROWS = [{"id": "a", "success": True}, {"id": "b", "success": False}, {"id": "c", "success": None}]


def stored(folder: Path, form: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    path = folder / "labels"
    if form == "Parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif form == "CSV":
        pl.DataFrame(rows).write_csv(path)
    elif form == "TSV":
        pl.DataFrame(rows).write_csv(path, separator="\t")
    elif form == "lines":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "an object":
        path.write_text(json.dumps({row["id"]: row["success"] for row in rows}))
    else:
        path.write_text(json.dumps(rows, indent=1))
    return path


def logged(*names: str) -> list[dict[str, Any]]:
    return [chat(id=name, task_id=f"task {name}") for name in names]


@pytest.mark.parametrize("form", ["CSV", "TSV", "lines", "a list", "an object", "Parquet"])
def test_labels_decide(form: str, tmp_path: Path, read_lines: Any) -> None:
    labels = read_labels(stored(tmp_path, form))
    log = read_lines(*logged("b", "a", "c", "d"), wanted=Wanted(judge=labels))
    assert [trace.success for trace in log.traces] == [False, True, None, None]
    assert list(log.outcomes.lines()) == ["labels: success: 1 won, 1 lost, 2 unknown"]
    assert log.warnings == [
        f"--outcomes {tmp_path}/labels: 2 of 4 traces have no label; their outcomes are unknown"
    ]
    assert list(labels.unused()) == []


def test_ids_that_no_trace_has_are_counted(tmp_path: Path, read_lines: Any) -> None:
    labels = read_labels(stored(tmp_path, "CSV"))
    read_lines(*logged("a"), wanted=Wanted(judge=labels))
    assert list(labels.unused()) == [
        f"--outcomes {tmp_path}/labels: 2 of 3 ids belong to no trace ('b', 'c')"
    ]


def test_labels_of_which_none_is_a_traces_stop_the_command(tmp_path: Path, read_lines: Any) -> None:
    labels = read_labels(stored(tmp_path, "CSV"))
    read_lines(*logged("x"), wanted=Wanted(judge=labels))
    with pytest.raises(TracesError, match=r"none of its 3 ids \('a', 'b', 'c'\) is in the log, whose first"):
        list(labels.unused())


def test_a_column_of_another_name_is_a_field_of_the_records(tmp_path: Path, read_lines: Any) -> None:
    rows = [{"extra.issue": 7, "success": 1}, {"extra.issue": 8, "success": 0}]
    lines = [chat(id="7", extra={"issue": 8}), chat(id="8", extra={"issue": 7})]
    labels = read_labels(stored(tmp_path, "lines", rows))
    log = read_lines(*lines, wanted=Wanted(judge=labels))
    assert [trace.success for trace in log.traces] == [False, True]


def test_traces_that_share_a_label_are_said(tmp_path: Path, read_lines: Any) -> None:
    labels = read_labels(stored(tmp_path, "CSV", [{"id": "t", "success": 1}]))
    log = read_lines(chat(id="1", task_id="t"), chat(id="2", task_id="t"), wanted=Wanted(judge=labels))
    assert [trace.success for trace in log.traces] == [True, True]
    assert "2 traces share 1 labels: traces with the same id get the same label" in " ".join(log.warnings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,success\na,maybe\n", "line 2: success: 'maybe' says neither yes nor no; write true or false"),
        ("id,won\na,1\n", "labels: column success is missing; its columns are id, won"),
        ("name,run,success\na,b,1\n", "labels: column id is missing; its columns are name, run, success"),
        ("id,success\na,1\na,0\n", "line 3: id 'a' has two different labels"),
        ("id,success\n,1\n", "line 2: id is missing"),
        ("id,success\n", "contains no labels"),
        ("", "contains no labels"),
        ('["a"]', "'a' is not an object with id and success"),
        ('{"id": "a"', "not JSON"),
        ("id,success\n\xff\xfe,1\n", None),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(text: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(text.encode("latin-1"))
    with pytest.raises(TracesError, match=re.escape(said or "neither text in UTF-8")) as caught:
        read_labels(tmp_path / "labels")
    assert str(caught.value).startswith(f"--outcomes {tmp_path}/labels")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracesError, match="no such file; name a file with the columns id and success"):
        read_labels(tmp_path / "none.csv")


def trace(*steps: tuple[str | None, Any, Any]) -> Trace:
    return Trace("t", tuple(TraceStep(tool, content, answer) for tool, content, answer in steps))


def verdict(rule: str, *steps: tuple[str | None, Any, Any]) -> bool | None:
    return last_call(rule)(trace(*steps), lambda path: None)


TESTS = [
    ("python -m pytest -q tests | tail -3", "===== 3 passed in 0.1s =====", True),
    ("python -m pytest -q", "1 failed, 2 passed in 0.1s", False),
    ("pytest", "collected 0 items\nno tests ran in 0.0s", False),
    ("pytest", "Traceback (most recent call last):\nImportError", False),
    ("python -m unittest", "Ran 3 tests in 0.0s\n\nOK", True),
    ("python -m unittest", "FAILED (failures=1)", False),
    ("cargo test", "test result: ok. 3 passed; 0 failed; 0 ignored", True),
    ("cargo test", "test result: FAILED. 2 passed; 1 failed", False),
    ("go test ./...", "ok  \texample/gcd\t0.01s", True),
    ("go test ./...", "--- FAIL: TestGcd (0.00s)\nFAIL", False),
    ("npm test", "Tests: 1 failed, 3 passed, 4 total", False),
    ("npm run test", "Tests:       4 passed, 4 total", True),
    ("mvn -q test", "BUILD SUCCESS", True),
    ("make check", "<returncode>2</returncode>", False),
    ("make test", "done", None),
    ("make test", "", None),
    ("ls tests", "3 passed", None),
]


@pytest.mark.parametrize(("command", "answer", "passed"), TESTS)
def test_the_last_test_command_decides_by_what_it_printed(
    command: str, answer: str, passed: bool | None
) -> None:
    assert verdict("tests", ("bash", {"command": command}, answer)) is passed
    assert (
        verdict("tests", ("bash", {"command": command}, answer), ("bash", {"command": "ls"}, "x")) is passed
    )
    earlier = ("bash", {"command": "pytest"}, "9 passed" if not passed else "9 failed")
    assert verdict("tests", earlier, ("bash", {"command": command}, answer)) is (
        passed if command != "ls tests" else True
    )


def test_a_tool_that_runs_tests_is_a_test_command() -> None:
    assert verdict("tests", ("run_tests", {}, "2 passed")) is True
    assert verdict("tests", ("test", {}, "3 passed")) is True
    assert verdict("tests", ("attest", {}, "3 passed")) is None


def test_a_rule_of_two_expressions_decides_by_its_last_call() -> None:
    rule = r"submit .*final -> accepted"
    steps = [("submit", {"kind": "final"}, "rejected"), ("submit", {"kind": "final"}, "accepted")]
    assert verdict(rule, *steps) is True and verdict(rule, *steps[::-1]) is False
    assert verdict(rule, ("submit", {"kind": "draft"}, "accepted")) is None


def test_a_call_that_the_log_marks_as_failed_is_a_failure() -> None:
    step = TraceStep("bash", {"command": "pytest"}, "3 passed", refused=True)
    assert last_call("tests")(Trace("t", (step,)), lambda path: None) is False


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("test", "write tests, or two"),
        ("pytest ->", "write tests, or two"),
        ("( -> x", "not a regular expression"),
    ],
)
def test_another_rule_is_refused(rule: str, said: str) -> None:
    with pytest.raises(TracesError, match=re.escape(f"--last-call {rule}")) as caught:
        last_call(rule)
    assert said in str(caught.value)


def run(number: int, printed: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": "pytest"})}
    call = {"id": "c", "type": "function", "function": function}
    return {
        "id": f"r{number}",
        "messages": [
            {"role": "user", "content": "Mend gcd."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": printed},
            {"role": "assistant", "content": "Done."},
        ],
    }


def test_the_command_takes_labels_and_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = ["3 passed", "1 failed", "3 passed", "killed"]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(run(number, text)) + "\n" for number, text in enumerate(printed)))
    assert main(["skills", str(log), "--last-call", "tests", "--output", str(tmp_path / "rule")]) == 0
    told = capsys.readouterr()
    assert "outcomes: last call, tests: 2 won, 1 lost, 1 unknown" in told.out
    assert "--last-call tests: 1 of 4 traces have no such call, or its answer does not say" in told.err
    labels = stored(tmp_path, "CSV", [{"id": f"r{n}", "success": n < 2} for n in (0, 1, 2, 3, 9)])
    assert (
        main(["skills", str(log), "--outcomes", str(labels), "--output", str(tmp_path / "labels_out")]) == 0
    )
    told = capsys.readouterr()
    assert "outcomes: labels: success: 2 won, 2 lost" in told.out
    assert "1 of 5 ids belong to no trace ('r9')" in told.err
    assert "1 of 5 ids belong to no trace" in (tmp_path / "labels_out" / "skills.html").read_text()
    assert main(["skills", str(log), "--outcomes", str(labels), "--last-call", "tests"]) == 2
    assert "--outcomes and --last-call each say which traces succeeded" in capsys.readouterr().err


def test_labels_may_be_of_both_logs_that_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, numbers in (("one", range(3)), ("two", range(3, 6))):
        (tmp_path / name).write_text("".join(json.dumps(run(n, "x")) + "\n" for n in numbers))
    labels = stored(tmp_path, "lines", [{"id": f"r{n}", "success": n % 2} for n in range(6)])
    options = [
        "--compare",
        str(tmp_path / "two"),
        "--outcomes",
        str(labels),
        "--output",
        str(tmp_path / "out"),
    ]
    assert main(["skills", str(tmp_path / "one"), *options]) == 0
    assert "to no trace" not in capsys.readouterr().err
