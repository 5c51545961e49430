"""The paper's tables from folders of finished runs, with real episodes of a random explorer."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from skillpress.cli.command import main as command
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.evaluation.paper.text import csv_text, markdown
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, HISTORY, LIBRARY
from skillpress.pipeline.finished.paper_tables import main, notes_on, tables_of, tables_or_reason
from skillpress.pipeline.finished.run import RunsError, by_environment, read_run
from skillpress.skills.history import write_history
from skillpress.skills.library.library import SkillLibrary, Version, write_library
from tests.support.pipeline.finished_run import play_run

GRPO = {"reward": {"shaping": "none"}}


@pytest.fixture
def make(tmp_path: Path, repository: Path):
    return lambda name, *overlays: play_run(tmp_path / name, repository, *overlays)


def cells(tables, table: int, key: str):
    (found,) = (t for t in tables if t.number == table)
    return next(line for line in found.lines if line.key == key).cells


def test_the_method_of_a_run_is_what_its_parameters_say_whatever_its_folder_is_called(make) -> None:
    assert read_run(make("x")).method.name == "segcost"
    assert read_run(make("y", {"skills": {"buffer": 0}})).method.name == "segcost_no_buffer"
    assert read_run(make("segcost", GRPO)).method.name == "grpo"
    assert read_run(make("z", {"training": {"steps": 0}})).method.name == "vanilla"


LAMBDA = "SegCost (buffer) with reward.shaping_weight 31.6"
REPLAY = "SegCost (buffer) with training.replay.groups 4, training.replay.staleness 2"


def test_other_methods_stand_beside_the_papers_row_and_are_no_seeds_of_it(make) -> None:
    replay = {"algorithm": {"importance": "token"}, "training": {"replay": {"groups": 4, "staleness": 2}}}
    runs = [
        make("a"),
        make("b", {"seed": 1}, replay),
        make("c", {"seed": 2}, {"reward": {"shaping_weight": 31.6}}),
        make("d", {"seed": 3}, {"training": {"learning_rate": 0.001}}),
    ]
    rate = "SegCost (buffer) with training.learning_rate 0.001"
    replayed = REPLAY.replace("with ", "with algorithm.importance token, ")
    found = [read_run(run) for run in runs]
    tables = tables_of(found)
    success = cells(tables, 1, "all")
    assert {method: cell.episodes for method, cell in success.items() if cell.episodes} == {
        "explorer": 192, "vanilla": 192, "segcost": 48, replayed: 48, LAMBDA: 48, rate: 48,
    }  # fmt: skip
    assert all(cell.paper == "" for method, cell in success.items() if " with " in method)
    text = markdown(tables, notes_on(found))
    assert f"{replayed} (seed 1); " in text and f"| {LAMBDA} | **" in text
    closing = text[text.index("## Table 4") :]
    assert f"| {LAMBDA} | {rate} |\n" in closing[: closing.index("|---")]
    assert f",{LAMBDA},last," in csv_text(tables, "last")


def test_a_run_with_a_skill_library_has_its_own_name_and_its_library(make) -> None:
    library = {"retrieval": "by_task", "top_k": 1, "every": 1, "new": 1, "teacher": None}
    run = read_run(make("x", GRPO, {"skills": {"library": library}}))
    assert run.method.row == "grpo" and run.method.label.startswith(
        "GRPO with skills.library.retrieval by_task"
    )
    assert cells(tables_of([run]), 1, "all")["grpo"].text == ""
    assert run.library == SkillLibrary()
    grown = SkillLibrary((Version(step=1, failures=("train/1/a/0",), added=()),))
    write_library(run.folder / LIBRARY, grown)
    assert run.library == grown


def test_the_report_of_an_erl_run_does_not_call_it_segcost(make) -> None:
    erl = {"name": "erl", "distill": 0.5, "kl": 0.5, "retries": 8, "reflection": "own"}
    run = read_run(make("x", {"experience": erl, "policy": {"knowledge_words": 8}}))
    tables, notes = tables_or_reason([run])
    assert cells(tables, 1, "all")["segcost"].text == ""
    assert "SegCost (buffer) with experience.name erl, experience.distill 0.5" in notes[0]


def test_seeds_of_a_method_are_pooled_and_every_cell_counts_its_episodes(make) -> None:
    runs = [make("a", GRPO), make("b", GRPO, {"seed": 1}), make("c")]
    tables = tables_of([read_run(run) for run in runs])
    assert [table.number for table in tables] == [1, 2, 4, 9, 10]
    success = cells(tables, 1, "all")
    assert {method: cell.episodes for method, cell in success.items()} == {
        "explorer": 96, "vanilla": 96, "grpo": 96, "round_length": 0, "segcost": 48, "segcost_no_buffer": 0,
    }  # fmt: skip
    episodes = [t for run in runs[:2] for t in read_rollouts(run / EVALUATION_ROLLOUTS)]
    won = [t.won for t in episodes if t.policy == "trained"]
    assert success["grpo"].value == pytest.approx(sum(won) / len(won))
    closing = [
        cells(tables, 4, f"closing_{name}")["grpo"] for name in ("add", "subtract", "multiply", "divide")
    ]
    assert sum(cell.value for cell in closing) == sum(won)
    assert {cell.episodes for cell in closing} == {sum(won)}


def test_the_last_steps_dictionary_of_each_seed_stands_beside_the_fitted_one(make) -> None:
    first, second = make("a"), make("b", {"seed": 1})
    write_history(first / HISTORY, {3: {("Reset", "Rollback"): 9}, 7: {("Reset", "Reset"): 2}})
    write_history(second / HISTORY, {6: {("Reset", "Reset"): 3}})
    last = cells(tables_of([read_run(first), read_run(second)]), 10, "phrases_last_step")
    assert last["segcost"].text == "Reset → Reset (5×)" and last["vanilla"].text == ""


def test_figures_that_partition_add_up(make) -> None:
    tables = tables_of([read_run(make("a"))])
    shares = [cells(tables, 9, f"failures_{end}")["segcost"].value for end in ("timeout", "stuck")]
    assert sum(shares) == pytest.approx(1)


def test_the_command_writes_markdown_csv_and_a_page(make, tmp_path: Path, capsys) -> None:
    assert main([str(make("a", GRPO)), str(make("b")), "--out", str(tmp_path / "out")]) == 0
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert written.keys() == {"tables.md", "tables.csv", "tables.html"}
    assert "Checkpoint of every trained policy: last (training step 7)" in written["tables.md"]
    assert "paper: 80.37 ± 0.33 %" in written["tables.md"]
    rows = list(csv.DictReader(written["tables.csv"].splitlines()))
    assert {row["table"] for row in rows} == {"1", "2", "4", "9", "10"}
    assert "Table 4. Closing operations" in written["tables.html"]
    assert "<script" not in written["tables.html"]


def test_two_runs_of_one_method_and_seed_are_refused(make) -> None:
    with pytest.raises(RunsError, match="are both runs of GRPO, seed 0, on countdown"):
        tables_of([read_run(make("a", GRPO)), read_run(make("b", GRPO))])


def test_runs_that_were_evaluated_differently_do_not_stand_in_one_table(make) -> None:
    with pytest.raises(RunsError, match=r"cannot be in one table: evaluation.votes is 1 and 3"):
        tables_of([read_run(make("a", GRPO)), read_run(make("b", {"evaluation": {"votes": 3}}))])


def test_a_run_on_tasks_that_were_kept_stands_beside_one_on_all_tasks_and_says_so(make) -> None:
    keep = {"tasks": {"keep": {"at_least": 0.5, "at_most": 0.5}}}
    runs = by_environment([read_run(make("a", GRPO)), read_run(make("b", GRPO | keep))])["countdown"]
    assert [called.label for _, called in runs] == [
        "GRPO", "GRPO with tasks.keep.at_least 0.5, tasks.keep.at_most 0.5",
    ]  # fmt: skip


def test_runs_whose_checkpoints_follow_another_rule_do_not_stand_in_one_table(make) -> None:
    best = make("b")
    file = best / "results" / "evaluation.json"
    file.write_text(file.read_text().replace('"last"', '"best"'))
    with pytest.raises(RunsError, match="chosen by different rules: best, last"):
        tables_of([read_run(make("a", GRPO)), read_run(best)])


def test_a_policy_evaluated_with_other_weights_than_training_left_is_refused(make) -> None:
    folder = make("a")
    file = folder / "results" / "evaluation.json"
    file.write_text(file.read_text().replace('"step": 7', '"step": 8'))
    with pytest.raises(RunsError, match=r"evaluated at training step \[7\], its weights are of 8"):
        tables_of([read_run(folder)])


def test_a_run_that_misses_an_episode_is_refused_by_the_command(make, tmp_path: Path, capsys) -> None:
    folder = make("a")
    episodes = read_rollouts(folder / EVALUATION_ROLLOUTS)
    write_rollouts(folder / EVALUATION_ROLLOUTS, episodes[:-1])
    assert command(["tables", str(folder), "--out", str(tmp_path / "out")]) == exit_codes.USER_ERROR
    assert "has 0 episodes in run-1, must have 1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_run_is_refused_by_the_command(tmp_path: Path, capsys) -> None:
    assert command(["tables", str(tmp_path)]) == exit_codes.USER_ERROR
    assert "params.yaml: cannot be read" in capsys.readouterr().err
