"""A conversation that has a file for each event is one run, whatever lies beside the events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skillpress.environments.calls.steps import text_of
from skillpress.logs.fields import Wanted
from skillpress.logs.labels import read_labels
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from tests.support.integrations.foreign_records import CALLS, DONE, openhands_events, openhands_sdk

TOOLS = tuple(tool for tool, _, _ in CALLS)
NAMES = {"new": "event-{number:05d}-{id}.json", "old": "{number}.json"}


def conversation(folder: Path, events: Sequence[dict[str, Any]], pattern: str) -> Path:
    (folder / "events").mkdir(parents=True)
    for number, event in enumerate(events):
        name = pattern.format(number=number, id=event["id"])
        (folder / "events" / name).write_text(json.dumps(event))
    (folder / "base_state.json").write_text('{"agent": {"kind": "Agent"}, "stats": {}}')
    return folder


def read(path: Path, wanted: Wanted | None = None) -> Log:
    return read_log([path], NameProjection(), wanted or Wanted(), 0.1)


@pytest.mark.parametrize("form", NAMES)
def test_each_folder_of_events_is_one_run_that_can_be_read_again(form: str, tmp_path: Path) -> None:
    events = openhands_sdk() if form == "new" else openhands_events()
    more = [{**events[0], "id": f"x{number}"} for number in range(9)]  # then 10 comes after 2 by number only
    for name in "ab":
        folder = conversation(tmp_path / name, [*more, *events], NAMES[form])
        (folder / "events" / ".eventlog.lock").write_text("")
    log = read(tmp_path)
    assert log.skills == [TOOLS, TOOLS] and log.bad_lines == 0
    for _, trace in traces_at(log, Wanted(), [0, 1]):
        assert trace.name in ("a", "b") and trace.steps[-1].content == DONE
        assert [text_of(step.answer) for step in trace.steps[:-1]] == [answer for _, _, answer in CALLS]


def test_the_folder_itself_may_be_named_and_its_label_is_its_conversations_name(tmp_path: Path) -> None:
    folder = conversation(tmp_path / "c7", openhands_sdk(), NAMES["new"]) / "events"
    (tmp_path / "labels.csv").write_text("id,success\nc7,true\n")
    log = read(folder, Wanted(judge=read_labels(tmp_path / "labels.csv")))
    assert [trace.success for trace in log.traces] == [True]


def test_cached_copies_are_passed_over_and_a_damaged_event_is_named(tmp_path: Path) -> None:
    folder = conversation(tmp_path / "a", openhands_events(), NAMES["old"])
    (folder / "event_cache").mkdir()
    (folder / "event_cache" / "0-25.json").write_text(json.dumps(openhands_events()))
    (folder / "events" / "999.json").write_text('{"source": "agent", ')
    log = read_log([tmp_path], NameProjection(), Wanted(), 1.0)
    assert log.skills == [TOOLS] and [bad.why for bad in log.bad if "999.json" in bad.why]
    assert any("copies of the events" in passed.why for passed in log.passed_over)


def test_other_folders_of_this_name_are_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for number in range(2):
        record = {"messages": [{"role": "assistant", "content": "Go."}, {"role": "user", "content": "on"}]}
        (tmp_path / "events" / f"{number}.json").write_text(json.dumps(record))
    assert len(read(tmp_path)) == 2
