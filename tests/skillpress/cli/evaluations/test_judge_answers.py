"""``skillpress judge-answers``: a model's grades of recorded answers, which ``skillpress tables`` shows."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest
import yaml

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.experiment.params import merge, read_yaml
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, GRADES, POLICIES, split_file
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint
from tests.support.rollouts.chat_server import chat_server

TASKS = [
    Task("q0", "notebook_qa", 0, {"question": "Who wrote Ulysses?", "answers": ["James Joyce"],
                                  "dataset": "simpleqa", "supporting_titles": []}, "test"),
    Task("q1", "notebook_qa", 1, {"question": "Where is Leith?", "answers": ["Scotland"],
                                  "dataset": "simpleqa", "supporting_titles": []}, "test"),
]  # fmt: skip
ANSWERS = {"explorer": (None, "no"), "start": ("Joyce", "France"), "trained": ("Joyce", "Scotland")}
"""Policy to its answers to both questions; None for an episode without one."""


def episode(policy: str, task: Task, answer: str | None) -> Trajectory:
    outcome = "timeout" if answer is None else "won" if answer in task.spec["answers"] else "wrong_answer"
    return Trajectory(
        task_id=task.task_id, group_id=f"{policy}/{task.task_id}", rollout_index=0, won=outcome == "won",
        terminated=answer is not None, truncated=answer is None, outcome=outcome,
        policy_version=2 if policy == "trained" else 0, seed=0, policy=policy,
        steps=(Step((), (), (), "", "submit_final_answer(x)", "", None, (), answer=answer),),
    )  # fmt: skip


def write_run(folder: Path, repository: Path, **changed: str | None) -> Path:
    """A folder like that of a finished experiment; ``changed`` replaces the trained policy's answers."""
    values = merge(read_yaml(repository / "params.yaml"), read_yaml(OVERLAY))
    values = merge(values, {"evaluation": {"runs": 1, "votes": 1}, "training": {"steps": 2}})
    (folder / "results").mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    write_tasks(folder / split_file("test"), TASKS)
    played = [
        episode(policy, task, changed.get(task.task_id, answer) if policy == "trained" else answer)
        for policy in POLICIES
        for task, answer in zip(TASKS, ANSWERS[policy], strict=True)
    ]
    write_rollouts(folder / EVALUATION_ROLLOUTS, played)
    checkpoint = asdict(SelectedCheckpoint("last", 2, None))
    evaluation = {"checkpoint": checkpoint, "policies": {}, "comparisons": {}}
    (folder / "results" / "evaluation.json").write_text(json.dumps(evaluation))
    return folder


def judge(run: Path, model: str, *options: str) -> int:
    return main(["judge-answers", str(run), "--model", model, "--params", str(OVERLAY), *options])


OVERLAY = Path(__file__).parents[4] / "params" / "notebook_qa.yaml"


def grade(prompt: str) -> str:
    answer = prompt.rpartition("Answer: ")[2].splitlines()[0]
    return "So.\nGrade: A" if answer in ('"Joyce"', '"Scotland"') else "So.\nGrade: B"


def shown(run: Path, out: Path, figure: str) -> dict[str, str]:
    """Method to the text of a figure in the tables of a run."""
    assert main(["tables", str(run), "--out", str(out)]) == 0
    with (out / "tables.csv").open() as file:
        return {row["method"]: row["text"] for row in csv.DictReader(file) if row["figure"] == figure}


def test_each_answer_is_graded_once_and_the_tables_show_the_judges_score(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", repository)
    assert shown(run, tmp_path / "before", "judge_simpleqa")["vanilla"] == "none"
    with chat_server(answer=grade) as (url, heard):
        assert judge(run, url) == 0
    assert len(heard.bodies) == 4, "Joyce was said twice, and nothing is not sent to the judge"
    told = capsys.readouterr().out
    assert "explorer: 0 correct, 1 incorrect, 1 not attempted" in told
    assert "trained: 2 correct, 0 incorrect, 0 not attempted, 0 without a readable grade" in told
    assert pl.read_parquet(run / GRADES)["grade"].to_list() == [
        "not_attempted", "incorrect", "correct", "incorrect", "correct", "correct",
    ]  # fmt: skip
    assert not list(run.glob("results/*.unfinished/*")), "nothing unfinished is left"
    assert shown(run, tmp_path / "after", "judge_simpleqa") == {
        "explorer": "0.0%", "vanilla": "50.0%", "l0": "", "segcost": "100.0%"
    }  # fmt: skip
    assert shown(run, tmp_path / "after", "em_simpleqa")["segcost"] == "50.0%"
    assert "L0's Table 2" in (tmp_path / "after" / "tables.md").read_text()


def test_l0s_own_training_stands_in_the_row_of_its_table_beside_the_printed_figures(
    tmp_path: Path, repository: Path
) -> None:
    run = write_run(tmp_path / "run", repository)
    values = merge(read_yaml(run / "params.yaml"), read_yaml(OVERLAY.parent / "notebook_qa_l0.yaml"))
    (run / "params.yaml").write_text(yaml.safe_dump(values))
    found = shown(run, tmp_path / "out", "em_simpleqa")
    assert found == {"explorer": "0.0%", "vanilla": "0.0%", "l0": "50.0%"}
    lines = (tmp_path / "out" / "tables.md").read_text().splitlines()
    assert any("| L0-RL |" in line and "paper: 61.68 %" in line for line in lines)


def test_an_agent_that_answers_at_once_stands_in_its_own_row_of_l0s_table_1(
    tmp_path: Path, repository: Path
) -> None:
    run = write_run(tmp_path / "run", repository)
    (run / split_file("test")).unlink()
    multi_hop = [replace(task, spec={**task.spec, "dataset": "hotpotqa"}) for task in TASKS]
    write_tasks(run / split_file("test"), multi_hop)
    values = merge(read_yaml(run / "params.yaml"), {"policy": {"rendering": "direct", "model": "m"}})
    (run / "params.yaml").write_text(yaml.safe_dump(merge(values, {"imitation": {"demonstrations": 0}})))
    found = shown(run, tmp_path / "out", "em_hotpotqa")
    assert found["Direct Answer"] == "0.0%" and found["vanilla"] == ""
    assert found["SegCost (buffer) with policy.rendering direct"] == "50.0%"
    lines = (tmp_path / "out" / "tables.md").read_text().splitlines()
    (row,) = (line for line in lines if "| Direct Answer |" in line and "16.40" in line)
    assert "0.0%" in row and "L0's Table 1" in "".join(lines)


def test_an_evaluation_that_was_made_again_has_no_score_until_it_is_graded_again(
    tmp_path: Path, repository: Path
) -> None:
    run = write_run(tmp_path / "run", repository)
    with chat_server(answer=grade) as (url, _):
        assert judge(run, url) == 0
        write_run(run, repository, q1="France")
        assert shown(run, tmp_path / "stale", "judge_simpleqa")["segcost"] == "none"
        assert judge(run, url) == 0
    assert shown(run, tmp_path / "new", "judge_simpleqa")["segcost"] == "50.0%"


def test_what_was_graded_before_an_interruption_is_not_asked_again(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpress.cli.evaluations.judging.AT_A_TIME", 1)
    run = write_run(tmp_path / "run", repository)
    broken = (400, {}, {"error": {"message": "out of order"}})
    with chat_server(lambda number: broken if number > 2 else None, answer=grade) as (url, _):
        assert judge(run, url) == 2 and not (run / GRADES).exists()
    with chat_server(answer=grade) as (moved, heard):
        assert judge(run, moved) == 0
    assert len(heard.bodies) == 2 and pl.read_parquet(run / GRADES).height == 6


def test_a_file_without_answers_and_a_run_without_questions_are_refused(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", repository)
    played = [episode("trained", task, "x") for task in TASKS]
    old = [replace(each, steps=(replace(each.steps[0], answer=None),)) for each in played]
    others = [episode(policy, task, None) for policy in ("explorer", "start") for task in TASKS]
    write_rollouts(run / EVALUATION_ROLLOUTS, [*others, *old])
    assert judge(run, "http://127.0.0.1:9/v1") == 2
    assert "has no recorded answers; run its evaluate_policy stage again" in capsys.readouterr().err
    (run / "params.yaml").write_text((repository / "params.yaml").read_text())
    assert judge(run, "http://127.0.0.1:9/v1") == 2
    assert "plays countdown; only notebook_qa has answers to grade" in capsys.readouterr().err
