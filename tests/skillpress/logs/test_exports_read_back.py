"""The results of ``skillpress export`` and the MLflow traces of rollouts agree with the rollout file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mlflow.entities import Trace as MlflowTrace
from mlflow.entities import TraceData

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.environments.calls.steps import TraceStep, text_of
from skillpress.integrations.formats.atif import write_atif
from skillpress.integrations.formats.sharegpt import write_sharegpt
from skillpress.integrations.formats.texts import Texts
from skillpress.logs.fields import Wanted
from skillpress.logs.formats import format_of, part_of, read_record
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.rollouts import read_rollouts
from skillpress.logs.trace import Trace
from skillpress.pipeline.tracking.episode_trace import EpisodeTrace, StageRecord
from tests.support.episodes import made_step
from tests.support.integrations.playing import unsampled

Write = Callable[[Path, list[Trajectory], Texts], None]


def said_by(log: Log) -> list[tuple[object, ...]]:
    """Everything behind the page, in the order of files."""
    return [
        (each.skills, each.steps, each.success, each.task, each.version, each.time) for each in log.traces
    ]


def write_mlflow(path: Path, episodes: list[Trajectory], texts: Texts) -> None:
    stage = StageRecord("1", "run", "evaluate_policy")
    with path.open("w", encoding="utf-8") as file:
        for each in episodes:
            trace = EpisodeTrace(stage, each, tuple(texts(each)), 1_700_000_000_000_000_000)
            file.write(MlflowTrace(trace.info(), TraceData(list(trace.spans()))).to_json() + "\n")


@pytest.mark.parametrize("write", [write_atif, write_sharegpt, write_mlflow])
def test_exported_rollouts_are_the_same_log(write: Write, episode: Any, tmp_path: Path) -> None:
    actions = ['{"tool": "edit", "command": "view"}', "!", '!{"tool": "submit"}', "go to desk 1", "!<b>"]
    played = [
        dataclasses.replace(
            episode(f"t{number % 3}", number, actions[number % 5 :], number % 2 == 0),
            policy="start",
            policy_version=number,
        )
        for number in range(10)
    ]
    write_rollouts(tmp_path / "rollouts.parquet", played)
    write(tmp_path / "exported.jsonl", played, Texts())
    ours, theirs = (
        read_log([tmp_path / name], NameProjection(), Wanted(), 0.0)
        for name in ("rollouts.parquet", "exported.jsonl")
    )
    assert said_by(theirs) == said_by(ours) and theirs.alphabet == ours.alphabet == ("edit", "submit")


ACTIONS = st.text(max_size=12) | st.sampled_from(
    [
        '{"tool": "edit", "command": "view"}',
        '{"tool": 3}',
        "[1]",
        "go to desk 1",
        "<tool_call>{}",
        "```bash\nls\n```",
    ]
)


@st.composite
def episodes(draw: st.DrawFn) -> list[Trajectory]:
    """Some episodes of any actions, observations and outcomes, without tokens."""
    steps = st.builds(
        lambda action, observation, invalid: made_step(
            action=action, observation=observation, invalid=invalid
        ),
        ACTIONS,
        st.text(max_size=12),
        st.sampled_from([None, "unreadable"]),
    )
    return [
        dataclasses.replace(
            unsampled(number),
            steps=tuple(draw(st.lists(steps, min_size=1, max_size=4))),
            won=draw(st.booleans()),
            task_id=draw(st.sampled_from(["door", "a b", "ä"])),
            group_id=f"g{number}",
            rollout_index=number,
            policy=draw(st.sampled_from(["start", "trained"])),
            policy_version=draw(st.integers(0, 9)),
            summaries=(),
        )
        for number in range(draw(st.integers(1, 3)))
    ]


def known_by(traces: list[Trace], unknown: str) -> list[tuple[Any, ...]]:
    """What traces say, without the answers that the format has no place for."""
    return [
        (
            tuple(
                step._replace(
                    answer=""
                    if _has_no_place(step, place + 1 == len(trace.steps), unknown)
                    else text_of(step.answer)
                )
                for place, step in enumerate(trace.steps)
            ),
            trace.name,
            trace.success,
            trace.task,
            trace.version,
            trace.time,
        )
        for trace in traces
    ]


def _has_no_place(step: TraceStep, last: bool, unknown: str) -> bool:
    return (unknown == "last" and last) or (unknown == "no action" and step.content == "")


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def read_back(
    write: Write, played: list[Trajectory], rows: Callable[[Path], list[Any]], unknown: str
) -> None:
    with TemporaryDirectory() as folder:
        write_rollouts(Path(folder) / "rollouts.parquet", played)
        every = frozenset(range(len(played)))
        ours = [trace for _, trace in read_rollouts(Path(folder) / "rollouts.parquet", every)]
        write(Path(folder) / "exported.jsonl", played, Texts())
        runs: dict[str, list[Any]] = {}
        for number, record in enumerate(rows(Path(folder) / "exported.jsonl")):
            part = part_of(record)
            runs.setdefault(f"line {number}" if part is None else part[1], []).append(record)
    theirs = []
    for name, held in runs.items():
        record = held[0] if name.startswith("line ") else held
        known = format_of(record)
        assert known is not None
        theirs.append(read_record(known, record, Wanted()))
    assert known_by(theirs, unknown) == known_by(ours, unknown)


_PHASES = (Phase.explicit, Phase.generate)


@pytest.mark.parametrize(
    ("write", "unknown"),
    [(write_atif, ""), (write_sharegpt, "last"), (write_mlflow, "no action")],
    ids=["ATIF", "ShareGPT", "MLflow"],
)
@settings(max_examples=25, deadline=None, derandomize=True, phases=_PHASES)
@given(played=episodes())
def test_any_episode_is_read_back_as_it_was(write: Write, unknown: str, played: list[Trajectory]) -> None:
    read_back(write, played, lines_of, unknown)


@pytest.mark.heavy
@settings(max_examples=5, deadline=None, derandomize=True, phases=_PHASES)
@given(played=episodes())
def test_any_episode_is_read_back_from_a_dataset(played: list[Trajectory]) -> None:
    import datasets

    from skillpress.integrations.formats.hugging_face import write_datasets

    read_back(write_datasets, played, lambda path: datasets.load_from_disk(str(path)).to_list(), "")


def test_decisions_of_sub_agents_say_in_a_trace_what_they_continue() -> None:
    """The second sub-agent's decision is the first's neighbour, and begins a conversation."""
    (first, *_), calls = unsampled().steps, (((1,), (2,)), ((3,), (4,)), ((1, 2, 5), (6,)))
    steps = [
        dataclasses.replace(first, prompt_ids=prompt, response_ids=response, logprobs=(-1.0,))
        for prompt, response in calls
    ]
    played = dataclasses.replace(unsampled(), steps=tuple(steps))
    trace = EpisodeTrace(StageRecord("1", "run", "stage"), played, tuple(Texts()(played)), 0)
    found = [span.attributes.get("continues", "no tree") for span in trace.spans() if "decision" in span.name]
    assert found == [None, None, 0]
    alone = dataclasses.replace(played, steps=tuple(steps[:2]))
    trace = EpisodeTrace(StageRecord("1", "run", "stage"), alone, tuple(Texts()(alone)), 0)
    assert not any("continues" in span.attributes for span in trace.spans())
