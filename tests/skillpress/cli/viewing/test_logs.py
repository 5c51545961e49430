"""The viewer opens on the trained policy, and shows any agent's log step by step."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path

import pytest

from skillpress.cli.reading import add_ways_of_reading
from skillpress.cli.viewing import logs
from skillpress.cli.viewing.logs import is_log, log_source
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.logs.trace import TracesError
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.query import parse
from skillpress.reports.viewer.source import SourceFiles
from tests.support.integrations.trace_records import chat

_OPTIONS = ArgumentParser()
add_ways_of_reading(_OPTIONS)
READ = _OPTIONS.parse_args([])
CALLED = [
    {"role": "system", "content": "You repair programs."},
    {"role": "user", "content": "Mend <b>it</b>."},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "1", "function": {"name": "bash", "arguments": '{"command": "ls", "seconds": 5}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": "a.py"},
    {"role": "assistant", "content": "It is done."},
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with three runs of two tasks, nine other runs, and a bad line."""
    folder = tmp_path / "logs"
    folder.mkdir()
    rows = [
        {"messages": CALLED, "task_id": task, "resolved": won} for task, won in (("a", 1), ("b", 0), ("a", 0))
    ]
    rows += [chat(id=str(number)) for number in range(9)]
    (folder / "runs.jsonl").write_text("\n".join([*map(json.dumps, rows), "no trace"]))
    return folder


def test_each_run_is_an_episode_with_its_steps_in_order(log: Path, tmp_path: Path) -> None:
    source, note = log_source([log], READ, tmp_path)
    first, second, third, *others = read_rollouts(source.rollouts)
    assert (first.task_id, first.rollout_index, first.outcome, first.won) == ("a", 0, "success", True)
    assert (second.task_id, second.rollout_index, second.outcome, second.won) == ("b", 0, "failure", False)
    assert (third.task_id, third.rollout_index, third.won) == ("a", 1, False)
    assert first.first_observation == "system: You repair programs.\n\nuser: Mend <b>it</b>."
    assert [(step.action, step.observation) for step in first.steps] == [
        ('bash {"command": "ls", "seconds": 5}', "a.py"),
        ("It is done.", ""),
    ]
    assert len(others) == 9
    assert "Lines that were skipped because they are not traces: 1." in note


def test_the_page_lists_and_opens_them(log: Path, tmp_path: Path) -> None:
    source, note = log_source([log], READ, tmp_path)
    with closing(RolloutCatalogue("logs", [source], KnownPhrases(), note)) as catalogue:
        assert catalogue.about().note.startswith("Traces of a log: ")
        page = catalogue.page(parse([("won", "1"), ("task", "a")]))
        assert [row.id for row in page.rows] == ["0-0"]
        episode = catalogue.episode("0-0")
    assert [decision.action for decision in episode.decisions][1] == "It is done."
    assert [row.id for row in episode.siblings] == ["0-2"]


def test_long_logs_are_read_in_parts_and_the_page_says_if_some_are_left_out(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "TOGETHER", 2)
    monkeypatch.setattr(logs, "MOST", 5)
    source, note = log_source([log], READ, tmp_path)
    assert [episode.task_id for episode in read_rollouts(source.rollouts)][:3] == ["a", "b", "a"]
    assert len(read_rollouts(source.rollouts)) == 5
    assert "The first 5 of 12 are shown." in note


def test_options_of_reading_hold_here_too(log: Path, tmp_path: Path) -> None:
    strict = Namespace(**{**vars(READ), "most_bad": 0.0})
    with pytest.raises(TracesError, match="lines are not traces, more than --most-bad 0 allows"):
        log_source([log], strict, tmp_path)


def test_what_is_a_log_and_what_is_ours(log: Path, tmp_path: Path) -> None:
    ours = tmp_path / "evaluation.parquet"
    write_rollouts(ours, [played("start", 0)])
    assert is_log(log) and is_log(log / "runs.jsonl")
    assert not is_log(ours) and not is_log(tmp_path / "nowhere")
    (tmp_path / "experiment").mkdir()
    assert not is_log(tmp_path / "experiment"), "an empty folder is no log"
    (tmp_path / "experiment" / "params.yaml").touch()
    assert not is_log(tmp_path / "experiment")


def played(policy: str, number: int) -> Trajectory:
    step = Step((), (), (), "", "go", "", None, ())
    return Trajectory(f"t{number}", f"g{number}", 0, (step,), True, True, False, "won", 0, 0, policy=policy)


@pytest.mark.parametrize(
    ("files", "opens"),
    [
        ({"base": ["start"], "training": ["trained"], "evaluation": ["explorer", "start", "trained"]},
         "source=2&policy=trained"),
        ({"evaluation": ["explorer", "start", "trained"]}, "policy=trained"),
        ({"base": ["start"], "training": ["trained"]}, "source=1&policy=trained"),
        ({"one": ["start", "trained"], "base": ["start"], "other": ["start", "trained"]},
         "source=0&source=2&policy=trained"),
        ({"base": ["start"], "floors": ["explorer", "start"]}, ""),
        ({"training": ["trained"]}, ""),
        ({"log": [""]}, ""),
    ],
)  # fmt: skip
def test_the_page_opens_on_the_trained_policy_as_it_was_evaluated(
    files: dict[str, list[str]], opens: str, tmp_path: Path
) -> None:
    for name, policies in files.items():
        write_rollouts(tmp_path / f"{name}.parquet", [played(p, n) for n, p in enumerate(policies)])
    sources = [SourceFiles(name=name, rollouts=tmp_path / f"{name}.parquet") for name in files]
    with closing(RolloutCatalogue("some", sources, KnownPhrases(), opens_on="trained")) as catalogue:
        assert catalogue.about().opens == opens
