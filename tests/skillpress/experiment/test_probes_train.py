"""Probes of a real training do not change it, and a killed run leaves the same probes."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from safetensors.torch import load_file

from skillpress.experiment.training import train
from skillpress.training.loop.describing.probes import read_probes
from tests.support.experiment.killed_training import run, run_and_kill, same_files, same_weights, variant
from tests.support.programs.training_program import job, prepare

OVERLAY = """
processes: 1
tasks: {unseen: 24}
training: {steps: 5, learning_rate: 0.01, checkpoint_every: 2, probe: {every: 3, tasks: 20}}
environment: {max_steps: 8, max_numbers: 3, unseen_numbers: 4}
imitation: {epochs: 4}
"""
WITHOUT = OVERLAY.replace(", probe: {every: 3, tasks: 20}", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an undisturbed training and its probes."""
    path = tmp_path_factory.mktemp("probed")
    prepare(path, OVERLAY)
    run(path, "whole")
    return path


def of(folder: Path, to: Path, overlay: str) -> Path:
    """A folder for another overlay, with the same tasks and start policy."""
    variant(folder, to, overlay)
    shutil.copy(folder / "unseen.parquet", to)
    return to


def probes(folder: Path, output: str) -> pl.DataFrame:
    return read_probes(folder / f"probes-{output}.parquet")


def test_the_start_every_third_step_and_the_last_are_probed_on_both_kinds(folder: Path) -> None:
    found = probes(folder, "whole")
    whole = found.filter(pl.col("stratum").is_null())
    assert whole["step"].to_list() == [0, 0, 3, 3, 5, 5]
    assert whole["split"].to_list() == ["train", "unseen"] * 3 and set(whole["tasks"]) == {20}
    strata = found.filter(pl.col("stratum").is_not_null(), split="unseen")["stratum"]
    assert all(stratum.startswith("4 numbers, ") for stratum in strata)
    training = whole.filter(split="train")
    assert training["success"].max() > 0, "without a success nothing else would be tried"
    assert training.filter(pl.col("corpus") > 1)["certificate"].null_count() == 0


def test_probes_change_nothing_in_training_and_without_them_a_table_is_left_empty(
    folder: Path, tmp_path: Path
) -> None:
    of(folder, tmp_path, WITHOUT)
    run(tmp_path, "plain")
    assert probes(tmp_path, "plain").is_empty()
    plain, probed = (load_file(path / "model.safetensors") for path in (tmp_path / "plain", folder / "whole"))
    assert all(bool((plain[key] == probed[key]).all()) for key in plain)
    for name in ("dictionaries-{}.json", "training-{}.parquet", "advantages-{}.parquet"):
        ours = (folder / name.format("whole")).read_bytes()
        assert (tmp_path / name.format("plain")).read_bytes() == ours


@pytest.mark.kills
def test_a_killed_run_leaves_the_same_probes_and_each_is_told_of_with_its_step(
    folder: Path, tmp_path: Path
) -> None:
    of(folder, tmp_path, OVERLAY)
    run_and_kill(tmp_path, "killed", after=4)  # after the probe of step 3, before the checkpoint of step 4
    told: list[tuple[int, dict[str, float]]] = []
    train(job(tmp_path, "killed"), lambda step, metrics: told.append((step, metrics)))
    assert (tmp_path / "probes-killed.parquet").read_bytes() == (folder / "probes-whole.parquet").read_bytes()
    assert [step for step, _ in told] == [3, 4, 5], "step 0 was not probed again"
    assert [step for step, metrics in told if "probe/train/success" in metrics] == [3, 5]
    last = probes(tmp_path, "killed").filter(pl.col("stratum").is_null(), step=5, split="unseen")
    assert told[-1][1]["probe/unseen/success"] == last["success"].item()


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        ("processes: 1", "processes: 2"),
        ("checkpoint_every: 2", "checkpoint_every: 3, lag: 1"),
        ("checkpoint_every: 2", "checkpoint_every: 2, keep: best"),
    ],
)
def test_with_ranks_a_lag_or_the_best_step_too(change: tuple[str, str], folder: Path, tmp_path: Path) -> None:
    """The weights equal those without probes, the probes are the same after a kill, and so is the start."""
    of(folder, tmp_path, WITHOUT.replace(*change))
    run(tmp_path, "plain")
    (tmp_path / "overlay.yaml").write_text(OVERLAY.replace(*change))
    run(tmp_path, "probed")
    run_and_kill(tmp_path, "killed", after=4)
    run(tmp_path, "killed")
    for name in ("probed", "killed"):
        assert same_weights(tmp_path, "plain", name) and same_files(tmp_path, "plain", name)
    assert probes(tmp_path, "probed").equals(probes(tmp_path, "killed"))
    starts = [probes(*place).filter(step=0) for place in ((tmp_path, "probed"), (folder, "whole"))]
    assert starts[0].equals(starts[1])
