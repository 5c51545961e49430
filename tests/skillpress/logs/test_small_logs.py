"""The small logs of issue 30, where they are at hand: each record is read as its table says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.logs.fields import Wanted
from skillpress.logs.formats import format_of, read_record
from skillpress.logs.trace import Trace
from tests.conftest import shared_data


@pytest.fixture(scope="module")
def logs(repository: Path) -> Path:
    """The folder of small logs."""
    return shared_data(repository, "logs", "small logs are")


def traces(file: Path) -> Iterator[Trace]:
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        known = format_of(record)
        assert known is not None
        yield read_record(known, record, Wanted())


@pytest.mark.parametrize(
    ("name", "number", "tools", "words"),
    [
        ("anthropic_blocks.jsonl", 20, {"bash": 20, "edit": 20}, 20),
        ("responses_items.jsonl", 12, {"search": 12}, 12),
        ("tool_calls_as_text.jsonl", 12, {"ls": 12}, 0),
        ("both_call_fields.jsonl", 12, {"ls": 12, "edit": 12}, 0),
        ("demonstration_messages.jsonl", 12, {"ls": 12}, 0),
        ("null_tool_name.jsonl", 12, {"": 12}, 0),
    ],
)
def test_every_step_is_seen_and_none_is_made_up(
    logs: Path, name: str, number: int, tools: dict[str, int], words: int
) -> None:
    found = list(traces(logs / name))
    steps = Counter(step.tool for trace in found for step in trace.steps)
    assert (len(found), steps.pop(None, 0), steps) == (number, words, tools)


def test_demonstrations_are_left_out_and_counted(logs: Path) -> None:
    found: Counter[str] = Counter()
    for trace in traces(logs / "demonstration_messages.jsonl"):
        found.update(trace.left_out)
    assert found == {"demonstration messages": 12}


def test_rewards_are_compared_as_numbers(logs: Path) -> None:
    assert Counter(trace.success for trace in traces(logs / "float_reward.jsonl")) == {True: 6, False: 6}


def test_every_call_of_a_run_names_its_run_and_its_history(logs: Path) -> None:
    calls = [trace.call for trace in traces(logs / "growing_history.jsonl")]
    sessions = Counter(call.session for call in calls if call is not None)
    assert len(sessions) == 10 and set(sessions.values()) == {4}
    assert [len(call.history) for call in calls[:4] if call is not None] == [1, 3, 5, 7]
