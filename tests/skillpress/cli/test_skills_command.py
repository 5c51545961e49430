"""``skillpress skills`` as users call it, on logs of other tools and of our own agents."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import polars as pl
import pytest
from mlflow.entities import SpanType
from mlflow.entities.trace_location import MlflowExperimentLocation

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Task, Trajectory, skill_sequence
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.section import SplitSizes, projection_without_keys
from skillpress.pipeline import exit_codes
from skillpress.rollouts.agents import OutcomeReward, RandomExplorer
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.skills.dictionary import load_dictionary
from tests.support.integrations.trace_records import atif, chat

Run = Callable[..., Path]


@pytest.fixture
def skills(tmp_path: Path) -> Run:
    """``skills(traces, ...)``: the folder that the command wrote."""

    def run(*options: Path | str) -> Path:
        assert main(["skills", *map(str, options), "--output", str(tmp_path / "out")]) == 0
        return tmp_path / "out"

    return run


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_log_becomes_a_page_and_tables(
    skills: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = chat(solved=False, messages=chat()["messages"][:5])
    log = lines(tmp_path / "log.jsonl", *[chat()] * 40, *[failed] * 20, {"other": 1})
    folder = skills(log, "--success", "solved")
    assert load_dictionary(folder / "dictionary.json").learned == (("search", "edit", "test"),)
    phrases, contrasts = pl.read_csv(folder / "phrases.csv"), pl.read_csv(folder / "contrasts.csv")
    assert phrases.row(0) == ("search → edit → test", 3, 40, 40, pytest.approx(phrases["bits_saved"][0]))
    assert contrasts["separates"].any() and contrasts["compared"].unique().to_list() == [
        "successes - failures"
    ]
    assert pl.read_csv(folder / "bad_lines.csv").row(0) == (
        str(log),
        61,
        "not a known format; its keys are other",
    )
    told = capsys.readouterr()
    assert "log.jsonl, line 61: not a known format" in told.err and "1 bad line was passed over" in told.err
    assert told.out.splitlines()[:5] == [
        "read: 60 traces (chat completions), 200 steps: 160 call a tool, 40 are words",
        "tools: search 60, edit 60, test 40",
        "outcomes: solved: 40 won, 20 lost",
        "left out: 1 bad line",
        "skills: 3, by the names of tools or actions; 40 steps without a skill",
    ]
    assert "skills.html" in told.out


def test_bad_lines_of_the_run_before_are_gone(skills: Run, tmp_path: Path) -> None:
    assert (skills(lines(tmp_path / "a", *[chat()] * 9, {})) / "bad_lines.csv").exists()
    assert not (skills(lines(tmp_path / "a", chat())) / "bad_lines.csv").exists()


def test_two_logs_are_compared(skills: Run, tmp_path: Path) -> None:
    old = lines(tmp_path / "old", *[chat()] * 30)
    new = lines(tmp_path / "new", *[chat(messages=chat()["messages"][4:])] * 30)
    contrasts = pl.read_csv(skills(old, "--compare", new) / "contrasts.csv")
    assert contrasts["compared"].unique().to_list() == ["new - old"]


def test_versions_of_one_log_are_chosen(skills: Run, tmp_path: Path) -> None:
    log = lines(tmp_path / "log", *(chat(v=version) for version in "abc" for _ in range(20)))
    html = (skills(log, "--version", "v", "--between", "c", "a") / "skills.html").read_text()
    assert (
        "<bdi>c</bdi> (20 traces" in html
        and "<bdi>a</bdi> (20 traces" in html
        and "<bdi>b</bdi> (20)" in html
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--viewer", "javascript:alert(1)"], r"--viewer javascript:alert\(1\): must be an address such as"),
        (["--between", "a", "b"], "--between: no trace is of version 'a'; there are 'small'"),
        (["--between", "a", "b", "--compare", "x"], "give one of them"),
        (
            ["--success", "model"],
            "says neither yes nor no; write model>=NUMBER, model<=NUMBER or model=VALUE",
        ),
        (["--task", "nowhere"], "--task nowhere: none of 1 traces has it; the first has"),
        (["--version", "modle"], "--version modle: none of 1 traces has it; .*did you mean 'model'"),
        (["--time", "model"], "--time model: none of 1 traces has it as a time that can be read"),
        (["--rules", "chess"], "--rules chess: no such file, and not one of our tables"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = lines(tmp_path / "log", chat())
    code = main(["skills", str(log), *options, "--output", str(tmp_path / "out")])
    assert code == exit_codes.USER_ERROR and not (tmp_path / "out").exists()
    assert re.search(said, capsys.readouterr().err)


def test_a_success_that_no_trace_has_is_doubted(
    skills: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skills(lines(tmp_path / "log", *[chat()] * 3), "--success", "model=smal")
    assert "--success model=smal: not one of 3 traces succeeded by it" in capsys.readouterr().err


def test_a_field_named_for_rollouts_alone_is_refused(
    explored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--success", "reward>=1", "--output", str(tmp_path)]
    assert main(["skills", str(explored / "rollouts.parquet"), *options]) == exit_codes.USER_ERROR
    assert "--success reward: skillpress's rollout files always use won" in capsys.readouterr().err


def test_a_foreign_parquet_beside_traces_is_passed_over(
    skills: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    lines(tmp_path / "logs" / "a.jsonl", *[chat()] * 3)
    pl.DataFrame({"mine": [1]}).write_parquet(tmp_path / "logs" / "b.parquet")
    (tmp_path / "logs" / "c.parquet").write_bytes(b"PAR1 cut off")
    page = skills(tmp_path / "logs") / "skills.html"
    assert "3 traces" in capsys.readouterr().out and "b.parquet" in page.read_text()
    command = ["skills", str(tmp_path / "logs" / "b.parquet"), "--output", str(tmp_path / "other")]
    assert main(command) == exit_codes.USER_ERROR
    assert "not a known format; its keys are mine" in capsys.readouterr().err


def test_traces_that_mlflow_itself_exports_are_read(skills: Run, tmp_path: Path) -> None:
    experiment = mlflow.create_experiment("skills of traces", artifact_location=str(tmp_path / "mlruns"))
    place = MlflowExperimentLocation(experiment)
    for number in range(4):
        with mlflow.start_span("agent", span_type=SpanType.AGENT, trace_destination=place):
            for tool in ("search", "edit", "search", "edit"):
                with mlflow.start_span(tool, span_type=SpanType.TOOL) as span:
                    span.set_inputs({"text": tool})
                    span.set_outputs("done")
            mlflow.update_current_trace(session_id=f"task {number // 2}", tags={"solved": str(number > 0)})
    mlflow.flush_trace_async_logging()
    traces = mlflow.search_traces(locations=[experiment], return_type="list")
    (tmp_path / "list.json").write_text(json.dumps([json.loads(trace.to_json()) for trace in traces]))
    mlflow.search_traces(locations=[experiment]).to_json(
        tmp_path / "frame.jsonl", orient="records", lines=True
    )
    for file in ("list.json", "frame.jsonl"):
        html = (skills(tmp_path / file, "--success", "solved") / "skills.html").read_text()
        assert "4 traces with 16 steps, MLflow traces" in html and "solved: 3 won, 1 lost" in html


def test_a_folder_of_atif_documents_is_read(skills: Run, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "jobs" / str(number)).mkdir(parents=True)
        (tmp_path / "jobs" / str(number) / "trajectory.json").write_text(json.dumps(atif(), indent=2))
    html = (skills(tmp_path / "jobs", "--success", "extra.verifier.reward>=1") / "skills.html").read_text()
    assert "3 traces with 12 steps, ATIF" in html and "3 runs of sub-agents" in html


def test_code_repairs_explorer_has_the_skills_of_its_environment(
    skills: Run, tmp_path: Path, code_repair_data: Path
) -> None:
    section = CodeRepairParameters(
        name="code_repair", max_steps=10, data=str(code_repair_data), test_seconds=0.5, episode_seconds=60.0,
        measure_edits=False,
    )  # fmt: skip
    programs = list(section.make_tasks(SplitSizes(4, 0, 0), 0))
    shared = section.make_shared(2)
    explorer = RandomExplorer(section.explorer_actions, OutcomeReward(1.0, -1.0))
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), explorer, 2) as collector:
        played = collector.collect(requests(programs, 6, 0, "test"))
    write_rollouts(tmp_path / "rollouts.parquet", played)
    folder = skills(tmp_path / "rollouts.parquet", "--rules", "code_repair")
    found = load_dictionary(folder / "dictionary.json")
    assert set(found.alphabet) == set(section.make_projection().alphabet)
    labels = skill_counts(programs, played)
    assert sum(labels.values()) == sum(len(each.steps) for each in played)
    html = (folder / "skills.html").read_text()
    for skill, count in labels.items():
        assert f"<bdi>{skill}</bdi></span></th><td>{count}</td>" in html


def skill_counts(tasks: list[Task], played: list[Trajectory]) -> dict[str, int]:
    """Skill to steps, as the environment itself projects them."""
    of = {task.task_id: task for task in tasks}
    projection = projection_without_keys("code_repair")
    return Counter(skill for each in played for skill in skill_sequence(projection, of[each.task_id], each))
