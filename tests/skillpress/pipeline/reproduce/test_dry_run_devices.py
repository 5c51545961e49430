"""A dry run against devices: what fits a node, what is refused, and how the devices are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from skillpress.pipeline.reproduce import __main__ as reproduce

ROOT = Path(__file__).parents[4]
PAPER = ["--params", str(ROOT / "params" / "paper_alfworld.yaml")]
SERVERS = [*PAPER, "--params", str(ROOT / "params" / "servers.yaml")]
EIGHT = ["--devices", "8", "--device-memory"]


def test_what_does_not_fit_gpus_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "80"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "fits 8 devices of 80 GB: each of 8 processes takes at most 66.4 GB while sampling"
    )
    assert "\nwould run: prepare_tasks, prepare_policy, " in shown
    assert "\nmemory while sampling, at most: learner: weights 3.1, gradients " in shown
    assert "; engine: weights 3.1, keys and values 17.2; torch: memory of an update 38.6 GB\n" in shown
    assert "\nupdates: 300 training steps of at most 25, 7,500 in all\n" in shown
    assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "40"]) == 2
    shown, refused = capsys.readouterr()
    verdict = "does not fit 8 devices of 40 GB: each of 8 processes may take 66.4 GB while sampling"
    assert shown.startswith(verdict) and refused.startswith(f"refused: {verdict}")


def test_both_recipes_for_a_node_fit_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Lock-step on eight GPUs; and four GPUs that learn beside four that play the next step."""
    page = (ROOT / "docs" / "scaling.md").read_text()
    beside = [*SERVERS, "--params", str(ROOT / "params" / "lag.yaml")]
    for overlays, lag in ((PAPER, 0), (beside, 1)):
        assert reproduce.main(["--dry-run", *overlays, *EIGHT, "80"]) == 0
        shown = capsys.readouterr().out
        amount = shown.partition("at most ")[2].partition(" while")[0]
        assert shown.startswith("fits 8 devices of 80 GB") and f" {amount} " in page
        assert f"\n  lag: {lag}\n" in shown


def test_servers_take_gpus_of_the_node_and_their_options_are_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Four processes and four servers; 12 attention heads."""
    spread = ["--server-gpus", "2"]
    assert reproduce.main(["--dry-run", *SERVERS, "--devices", "12", "--device-memory", "80", *spread]) == 0
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80", *spread]) == 2
    assert "each of 4 processes needs one, and 4 servers need 2 each" in capsys.readouterr().err
    for options in (spread, ["--server-cache", "9"], ["--server-cache", "9", "--launch", "machine"]):
        assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "80", *options]) == 2
        assert "the experiment has no server on the node" in capsys.readouterr().err
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80", "--server-gpus", "5"]) == 2
    assert "the model's 12 attention heads cannot be spread evenly" in capsys.readouterr().err
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80", "--server-cache", "70"]) == 2
    assert "each GPU of a server may take 81.3 GB while serving" in capsys.readouterr().err


def test_a_machine_without_gpus_is_compared_and_never_refused(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has GPUs")
    assert reproduce.main(["--dry-run", "--params", str(ROOT / "params" / "paper_notebook_qa.yaml")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("does not fit this machine's memory of ")


@pytest.mark.parametrize("options", [["--devices", "8"], ["--device-memory", "80"]])
def test_devices_are_named_by_number_and_size(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--dry-run", *options]) == 2
    assert "give both or neither, such as --devices 8 --device-memory 80" in capsys.readouterr().err


def test_a_model_that_is_not_here_has_no_memory_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "elsewhere.yaml"
    overlay.write_text("policy: {model: nobody/nothing, rendering: text}")
    assert reproduce.main(["--dry-run", "--params", str(overlay)]) == 0
    assert "memory: unknown, since the configuration of nobody/nothing" in capsys.readouterr().out


def test_wrong_parameters_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay = tmp_path / "wrong.yaml"
    overlay.write_text("training: {stepz: 3}")
    assert reproduce.main(["--dry-run", "--params", str(overlay)]) == 2
    assert "training.stepz: unknown key" in capsys.readouterr().err
