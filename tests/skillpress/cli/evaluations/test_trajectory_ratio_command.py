"""``skillpress trajectory-ratio`` as users call it, on a small rollout file of real policies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from transformers import PreTrainedTokenizerFast

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.models.policy import save_policy
from skillpress.models.policy.scratch import word_tokenizer
from skillpress.pipeline.exit_codes import USER_ERROR
from tests.support.episodes import made_step, made_trajectory
from tests.support.models.tiny import tiny_policy


def episode(task: str, turns: int, policy: str = "start", tokens: bool = True) -> Trajectory:
    steps = tuple(
        made_step(
            prompt_ids=(3 + turn, 4) if tokens else (),
            response_ids=(5, 6 + turn) if tokens else (),
            logprobs=(-1.0, -1.0) if tokens else (),
            action="up",
        )
        for turn in range(turns)
    )
    return made_trajectory(steps, task_id=task, group_id=f"{policy}/{task}", policy=policy)


PLAYED = [episode("short", 1), episode("middle", 3), episode("long", 6)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, seed in (("one", 1), ("other", 2)):
        save_policy(tiny_policy(seed), tmp_path / name)
    write_rollouts("played.parquet", PLAYED)
    return tmp_path


def ratio(*words: str) -> int:
    return main(["trajectory-ratio", "played.parquet", *words])


def test_it_leaves_a_table_of_turns_a_summary_and_a_figure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ratio("one", "other", "--output", "out") == 0
    assert "effective sample size" in capsys.readouterr().out
    turns = pl.read_parquet("out/turns.parquet")
    assert turns["task_id"].to_list() == ["short", *["middle"] * 3, *["long"] * 6]
    sums = turns.group_by("task_id", maintain_order=True).agg(
        pl.col("log_ratio").sum(), pl.col("log_ratio_so_far").last().alias("last")
    )
    assert sums["log_ratio"].to_list() == pytest.approx(sums["last"].to_list())
    figures = json.loads((folder / "out" / "trajectory_ratio.json").read_text())
    assert figures["trajectory"]["count"] == 3 and figures["turn"]["count"] == 10
    assert figures["trajectory"]["mean"] == pytest.approx(turns["log_ratio"].sum() / 3)
    assert [spread["count"] for spread in figures["by_turn"]] == [3, 2, 2, 1, 1, 1]
    assert 1 <= figures["trajectory"]["effective"] <= 3
    ElementTree.parse(folder / "out" / "trajectory_ratio.svg")


def test_the_other_way_round_every_sign_turns_and_against_itself_all_are_0(folder: Path) -> None:
    for first, second, output in (("one", "other", "ab"), ("other", "one", "ba"), ("one", "one", "aa")):
        assert ratio(first, second, "--output", output) == 0
    there, back, itself = (
        pl.read_parquet(f"{name}/turns.parquet")["log_ratio"] for name in ("ab", "ba", "aa")
    )
    assert there.to_list() == pytest.approx((-back).to_list()) and there.abs().max() > 0.01
    assert itself.to_list() == [0.0] * 10


def test_of_several_policies_one_must_be_named_and_one_with_tokens(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explorer = episode("short", 2, "explorer", tokens=False)
    write_rollouts("played.parquet", [explorer, *PLAYED])
    assert ratio("one", "other") == USER_ERROR
    assert "several policies played (explorer, start); name one with --policy" in capsys.readouterr().err
    assert ratio("one", "other", "--policy", "explorer") == USER_ERROR
    assert (
        "--policy: 'explorer' left no tokens in played.parquet; choose from start" in capsys.readouterr().err
    )
    assert ratio("one", "other", "--policy", "trained") == USER_ERROR
    assert "'trained' did not play" in capsys.readouterr().err
    assert ratio("one", "other", "--policy", "start") == 0
    assert pl.read_parquet("results/trajectory_ratio/turns.parquet").height == 10


def test_what_has_no_ratio_is_refused_with_the_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(why: str, *words: str) -> None:
        assert ratio(*words) == USER_ERROR
        assert why in capsys.readouterr().err
        assert not Path("results").exists()

    save_policy(replace(tiny_policy(0), tokenizer=reversed_words()), folder / "unlike")
    refused("B: nowhere is not the folder of a Hugging Face model", "one", "nowhere")
    refused("one and unlike have different vocabularies", "one", "unlike")
    refused("--temperature: is 0", "one", "other", "--temperature", "0")
    short = replace(PLAYED[0], steps=(replace(PLAYED[0].steps[0], response_ids=(5, 600)),))
    write_rollouts("played.parquet", [short])
    refused("task short has token 600, but the models know only 55", "one", "other")
    long = replace(PLAYED[0], steps=(replace(PLAYED[0].steps[0], prompt_ids=(3,) * 100),))
    write_rollouts("played.parquet", [long])
    refused("a turn of task short has 102 tokens, more than the 28", "one", "other")
    write_rollouts("played.parquet", [episode("short", 2, tokens=False)])
    refused("has no tokens", "one", "other")


def reversed_words() -> PreTrainedTokenizerFast:
    """A tokenizer with the same number of words in another order."""
    return word_tokenizer(tuple(map(str, reversed(range(53)))))
