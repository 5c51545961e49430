"""Episodes as traces in the real MLflow: its search finds them and its chat view reads them."""

from __future__ import annotations

import itertools
from pathlib import Path

import mlflow
import pytest
from mlflow.entities import Span, SpanType, Trace

from skillpress.core.errors import ParamsError
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.tracking.episode_trace import sample_episodes
from skillpress.pipeline.tracking.recorder import SETTING, Recorder, most_traces
from skillpress.pipeline.tracking.runs import StageRun, create_database
from tests.support.integrations.playing import episode, unsampled, write_tokenizer

keys = (f"key-{number}" for number in itertools.count())
"""Keys of this module's stages; each stage gets a run of its own."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tracking database for this module; making one takes seconds."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('tracking')}/mlruns/mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        create_database()
    return uri


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def params(repository: Path) -> Params:
    return load_params(repository / "params.yaml")


def write(*played: Trajectory) -> tuple[Path, Path]:
    """(rollouts, the folder of the policy that played them)."""
    path = Path("data/rollouts/base.parquet")
    write_rollouts(path, played)
    return path, write_tokenizer(Path("models/base"))


def traces_of(run_id: str, experiment: str) -> list[Trace]:
    """The traces of a run, as MLflow's search finds them, the newest first."""
    found: list[Trace] = mlflow.search_traces(locations=[experiment], run_id=run_id, return_type="list")
    return found


def logged(params: Params, *played: Trajectory, most: int = 100) -> list[Trace]:
    """The traces of a stage that played these episodes."""
    run = StageRun("collect_rollouts", params, next(keys))
    run.log_episodes(*write(*played), most=most)
    return traces_of(run.run_id, run._experiment_id)


def spans(trace: Trace, kind: str) -> list[Span]:
    return [span for span in trace.data.spans if span.span_type == kind]


def test_a_trace_is_an_episode_whose_session_is_its_task(params: Params) -> None:
    found = logged(params, episode(0), episode(1), unsampled())
    assert [trace.info.trace_metadata["mlflow.trace.session"] for trace in found] == ["door", "door", "dark"]
    tags = found[1].info.tags
    assert (tags["policy"], tags["won"], tags["outcome"], tags["reward"]) == (
        "trained",
        "true",
        "won",
        "10.5",
    )
    assert (tags["group_id"], tags["rollout_index"]) == ("trained/run-0/door", "1")
    assert found[0].info.request_preview == "You see a door."
    assert found[0].info.response_preview == "won: open | open it"


def test_the_chat_view_finds_the_talk_in_the_root_span(params: Params) -> None:
    (trace,) = logged(params, episode())
    (root,) = spans(trace, SpanType.AGENT)
    assert root.parent_id is None
    assert root.inputs["messages"] == [
        {"role": "user", "content": "You see a door."},
        {"role": "assistant", "content": "think first open"},
        {"role": "user", "content": "what?"},
    ]
    assert root.outputs["choices"][0]["message"] == {"role": "assistant", "content": "open it"}


def test_every_decision_is_a_chat_models_span_with_its_exact_prompt_and_its_tokens(params: Params) -> None:
    (trace,) = logged(params, episode())
    decisions = spans(trace, SpanType.CHAT_MODEL)
    assert [span.name for span in decisions] == ["decision 0", "decision 1", "decision 2"]
    for span in decisions:
        assert span.inputs == {"messages": [{"role": "user", "content": "<start> you see a door"}]}
    answers = [span.outputs["choices"][0]["message"]["content"] for span in decisions]
    assert answers == ["think first open", "a door", "open it"]
    usage = [span.get_attribute("mlflow.chat.tokenUsage") for span in decisions]
    assert usage[0] == {"input_tokens": 5, "output_tokens": 4, "total_tokens": 9}
    assert [span.get_attribute("summary") for span in decisions] == [False, True, False]
    assert [span.get_attribute("invalid") for span in decisions] == ["unreadable", None, None]
    assert trace.info.token_usage["total_tokens"] == 15 + 10


def test_actions_are_calls_of_a_tool_in_their_order_within_the_episode(params: Params) -> None:
    (trace,) = logged(params, episode())
    actions = spans(trace, SpanType.TOOL)
    assert [(span.inputs["action"], span.outputs["observation"]) for span in actions] == [
        ("open", "what?"), ("open it", "It is open."),
    ]  # fmt: skip
    (root,) = spans(trace, SpanType.AGENT)
    assert {span.parent_id for span in trace.data.spans if span is not root} == {root.span_id}
    ordered = sorted(trace.data.spans, key=lambda span: span.start_time_ns)
    names = [span.name for span in ordered if span is not root]
    assert names == ["decision 0", "act", "decision 1", "decision 2", "act"]


def test_a_stage_that_logs_its_episodes_again_has_each_once(params: Params) -> None:
    run = StageRun("collect_rollouts", params, next(keys))
    files = write(episode(0), episode(1))
    for _ in range(2):  # as if it were killed between the first and the second
        run.log_episodes(*files, most=100)
    found = traces_of(run.run_id, run._experiment_id)
    assert len(found) == 2 and [len(trace.data.spans) for trace in found] == [6, 6]


def test_another_run_has_traces_of_its_own(params: Params) -> None:
    first, second = logged(params, episode()), logged(params, episode())
    assert first[0].info.trace_id != second[0].info.trace_id


def test_a_policy_without_a_tokenizer_leaves_the_prompts_out(params: Params) -> None:
    run = StageRun("collect_rollouts", params, next(keys))
    rollouts, _ = write(episode())
    run.log_episodes(rollouts, "nowhere", most=100)
    (trace,) = traces_of(run.run_id, run._experiment_id)
    assert spans(trace, SpanType.CHAT_MODEL)[2].outputs["choices"][0]["message"]["content"] == "open it"


@pytest.mark.parametrize(("setting", "expected"), [("2", 2), ("0", 0)])
def test_a_stage_records_as_many_as_the_setting_says(
    setting: str, expected: int, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, setting)
    recorder = Recorder("collect_rollouts", params, next(keys))
    recorder.log_episodes(*write(*(episode(number) for number in range(5))))
    recorder.finish("FINISHED")
    experiment = mlflow.get_run(recorder.run_id).info.experiment_id
    assert len(traces_of(recorder.run_id, experiment)) == expected


def test_a_setting_that_is_no_number_is_refused_before_the_stage_works(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "many")
    with pytest.raises(ParamsError, match="SKILLPRESS_TRACES is 'many'; must be a whole number"):
        Recorder("collect_rollouts", params, next(keys))


def test_a_hundred_episodes_of_a_stage_are_kept_where_nobody_says_otherwise(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skillpress.pipeline import settings

    monkeypatch.setenv(SETTING, settings.read(repository / "infra" / "settings.env", repository)[SETTING])
    assert most_traces() == 100


@pytest.mark.parametrize(("tasks", "each", "most"), [(30, 4, 20), (3, 4, 100), (1, 7, 5), (40, 1, 7)])
def test_the_sample_is_of_whole_tasks_that_are_spread_over_the_file(tasks: int, each: int, most: int) -> None:
    played = [episode(number, f"task-{task:02}") for task in range(tasks) for number in range(each)]
    rollouts, _ = write(*played)
    found = sample_episodes(rollouts, most)
    assert len(found) == min(most, tasks * each)
    if each <= most:
        chosen = [int(one.task_id[-2:]) for one in found[::each]]
        assert found == [one for one in played if int(one.task_id[-2:]) in chosen], "whole, in order"
        gaps = [after - before for before, after in itertools.pairwise([*chosen, tasks])]
        assert chosen[0] == 0 and max(gaps) - min(gaps) <= 1


def test_a_file_without_episodes_leaves_no_trace(params: Params) -> None:
    assert logged(params) == []
