"""A few paths read any log whose runs hold messages or calls."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log, read_log
from skillpress.logs.own_paths import paths_of
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.trace import Trace, TracesError
from tests.support.integrations import other_records as other
from tests.support.integrations.foreign_records import CALLS, DONE, RUN, openai_messages, run_in

ANSWERED = [(tool, arguments, json.dumps({"output": answer})) for tool, arguments, answer in CALLS]
UNANSWERED = [(tool, arguments, "") for tool, arguments, _ in CALLS]
LOGS: dict[str, tuple[str, Callable[[], list[Any]], list[Any], list[bool | None]]] = {
    "ART": ("ART", other.art, RUN, [True, False]),
    "rLLM": ("rLLM", other.rllm, RUN, [True]),
    "BFCL": ("BFCL", other.bfcl, [*UNANSWERED, RUN[-1]], [None]),
    "BFCL's text": ("BFCL", other.bfcl_text, [*UNANSWERED, RUN[-1]], [None]),
    "LangSmith": ("LangSmith", other.langsmith, RUN[:3], [True]),
    "Weave": ("Weave", other.weave, RUN, [None]),
    "Gemini CLI": ("Gemini CLI", other.gemini, [*ANSWERED, RUN[-1]], [None]),
    "LangSmith's models": ("LangSmith, models", other.langsmith_models, RUN, [None]),
    "Gemini CLI's lines": ("Gemini CLI, lines", other.gemini_lines, [*ANSWERED, RUN[-1]], [None]),
    "AutoGen's state": ("AutoGen", other.autogen_state, RUN, [None]),
    "smolagents": ("smolagents", other.smolagents, RUN, [None]),
    "AutoGen": ("AutoGen", other.autogen, RUN, [None]),
    "agent data protocol": (
        "agent data protocol",
        other.agent_data_protocol,
        [*RUN[:2], ("bash", {}, CALLS[2][2]), RUN[-1]],
        [None],
    ),
}
"""A log to its row on the page, its records, and what every run of it says."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "log_formats.md").read_text()


def options_on(page: str, row: str, folder: Path) -> Any:
    """The paths that the page gives for a log, its YAML tables written beside it."""
    for table in re.findall(r"```yaml\n(# (\w+\.yaml).*?)```", page, re.DOTALL):
        (folder / table[1]).write_text(table[0])
    found = re.search(rf"^\| {re.escape(row)} \|.*\| `(--[^`]+)` \|$", page, re.MULTILINE)
    assert found is not None, f"no row {row}"
    given = dict(zip(*[iter(shlex.split(found[1]))] * 2, strict=True))
    file = folder / given.pop("--paths") if "--paths" in given else None
    return paths_of(file, *(given.get(name) for name in ("--messages", "--run", "--outcome")))


def written(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(path: Path, paths: Any) -> tuple[Log, list[Trace]]:
    wanted = Wanted(paths=paths)
    log = read_log([path], NameProjection(), wanted, 0.0)
    return log, [trace for _, trace in sorted(traces_at(log, wanted, range(len(log))))]


@pytest.mark.parametrize("name", LOGS)
def test_the_paths_on_the_page_read_a_log_made_after_its_documentation(
    name: str, page: str, tmp_path: Path
) -> None:
    row, make, run, success = LOGS[name]
    log, traces = read(written(tmp_path / "log", make()), options_on(page, row, tmp_path))
    assert [run_in(trace) for trace in traces] == [run] * len(success)
    assert [trace.success for trace in log.traces] == success and not log.bad


@pytest.mark.parametrize("name", LOGS)
def test_a_document_and_a_table_say_the_same_as_lines(name: str, page: str, tmp_path: Path) -> None:
    row, make, run, success = LOGS[name]
    paths = options_on(page, row, tmp_path)
    (tmp_path / "document").write_text(json.dumps(make(), indent=1))
    texts = [
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in record.items()}
        for record in make()
    ]
    pl.DataFrame(texts).write_parquet(tmp_path / "table")
    stored_as = ["document"] if any("$set" in record for record in make()) else ["document", "table"]
    for stored in stored_as:
        log, traces = read(tmp_path / stored, paths)
        assert [run_in(trace) for trace in traces] == [run] * len(success), stored
        assert [trace.success for trace in log.traces] == success


def test_records_with_the_name_of_their_run_are_one_run(tmp_path: Path) -> None:
    lines = [{"run": run, "said": message} for run in (1, 2) for message in openai_messages()]
    log, traces = read(
        written(tmp_path / "log", [{**line["said"], "run": line["run"]} for line in lines]),
        paths_of(None, ".", "run", None),
    )
    assert [run_in(trace) for trace in traces] == [RUN, RUN] and [trace.task for trace in log.traces] == [
        "",
        "",
    ]
    assert [trace.name for trace in traces] == ["1", "2"]


def test_a_file_of_messages_is_one_run(tmp_path: Path) -> None:
    _, traces = read(written(tmp_path / "log", openai_messages()), paths_of(None, ".", None, None))
    assert [run_in(trace) for trace in traces] == [RUN]


def test_runs_have_the_fields_around_them(tmp_path: Path) -> None:
    record = {"model": "small", "info": {"ok": 1}, "runs": {"a": openai_messages(), "b": openai_messages()}}
    log, traces = read(written(tmp_path / "log", [record]), paths_of(None, ".", "runs.*", "info.ok"))
    assert [run_in(trace) for trace in traces] == [RUN, RUN]
    assert [trace.version for trace in log.traces] == ["small", "small"] and [
        trace.success for trace in log.traces
    ] == [True, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("chats", None, None), "--messages chats: nothing is there; the record has id: 'r0', task: object "
         "(id), chat: list of 9 (role, content), reward: 1.0; did you mean 'chat'?"),
        (("reward", None, None), "--messages reward: is 1.0; the record has id"),
        (("talk.chat", None, None), "did you mean 'chat'?"),
        (("chat", "rum.id", None), "--run rum.id: nothing is there"),
        (("chat", None, "reward.value"), "--outcome reward.value: none of 2 traces has it; the first has id, "
         "task.id, reward"),
        (("chat", None, "rewards"), "did you mean 'reward'?"),
        (("task", None, None), "an item is neither a message nor a call; its keys are id"),
        (("id", None, None), None),
    ],
)  # fmt: skip
def test_a_wrong_path_is_answered_with_what_is_there(options: Any, said: str | None, tmp_path: Path) -> None:
    lines = [{"id": f"r{n}", "task": {"id": 7}, "chat": openai_messages(), "reward": 1.0} for n in range(2)]
    path, paths = written(tmp_path / "log", lines), paths_of(None, *options)
    if said is None:  # a text may be the agent's words
        assert [run_in(trace) for trace in read(path, paths)[1]] == [[(None, "r0", "")], [(None, "r1", "")]]
        return
    with pytest.raises(TracesError) as caught:
        read(path, paths)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("message: steps", "message is unknown; a table of paths may contain messages, run"),
        ("message: steps", "did you mean 'messages'?"),
        ("run: steps", "messages are missing"),
        ("messages: 3", "messages: 3 must be a path, or a list of paths"),
        ("messages: steps\nwhere: {kind: '('}", "where: kind: '(' is not a regular expression"),
        ("messages: steps\nitem: {rolle: kind}", "item: rolle is unknown"),
        ("messages: steps\nitem: {role: kind, roles: {a: agent}}", "roles: a: 'agent' must be one of"),
        ("messages: steps\noutcome: reward>=much", "'much' is not a number"),
        ("- steps", "must be a table of paths"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_by_name(table: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(table)
    with pytest.raises(TracesError, match=re.escape(said)) as caught:
        paths_of(tmp_path / "mine.yaml", None, None, None)
    assert str(caught.value).startswith((str(tmp_path), "--success"))


def test_an_item_whose_role_no_table_names_is_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("messages: steps\nitem: {role: kind, roles: {a: assistant}}")
    path = written(tmp_path / "log", [{"steps": [{"kind": "b", "content": "x"}]}])
    with pytest.raises(TracesError, match="an item's role is b, but the roles of item say: a"):
        read(path, paths_of(tmp_path / "mine.yaml", None, None, None))


def test_the_command_reads_by_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"chat": openai_messages(), "reward": number % 2} for number in range(6)]
    path = written(tmp_path / "log", lines)
    options = ["--messages", "chat", "--outcome", "reward", "--output", str(tmp_path / "page")]
    assert main(["skills", str(path), *options]) == 0
    told = capsys.readouterr().out
    assert "read: 6 traces (own paths), 24 steps" in told and "outcomes: reward: 3 won, 3 lost" in told
    assert DONE in (tmp_path / "page" / "skills.html").read_text()


def test_an_outcome_without_messages_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "log", [{"chat": openai_messages(), "reward": 1}])
    assert main(["skills", str(path), "--outcome", "reward"]) == 2
    assert "--outcome: messages are missing; --messages PATH" in capsys.readouterr().err
