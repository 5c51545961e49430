"""DeepSpeed's updates compared with plain torch, for every configuration that ships.

Each configuration trains in a separate process, because DeepSpeed keeps global state.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from skillpress.training.loop.optimizer import read_configuration
from skillpress.training.loop.parameters import DEEPSPEED
from tests.support import nursery
from tests.support.programs import PROGRAMS, importing

PROGRAM = PROGRAMS / "learner_program.py"
FIGURES = PROGRAMS / "learner_figures_program.py"
TOLERANCE = {"fp32": 1e-4, "bf16": 0.3}
"""Tolerances differ because bfloat16 keeps 8 bits, and AdamW turns a small gradient's sign error into a whole
step."""


def trained(tmp_path: Path, configuration: str, processes: int, *options: str) -> dict[str, torch.Tensor]:
    output = tmp_path / f"{configuration}-{processes}-{len(options)}.pt"
    finished = nursery.run(PROGRAM, configuration, str(processes), str(output), *options)
    assert finished.returncode == 0, finished.stderr[-2000:]
    weights: dict[str, torch.Tensor] = torch.load(output)
    return weights


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained(tmp_path_factory.mktemp("plain"), "plain", 1)


def cases(quick: str, thorough: str) -> pytest.MarkDecorator:
    """Parameters (configuration, processes), written as ``zero1_fp32 on 1``; thorough ones by night."""
    found = [pytest.param(*case(each), id=each) for each in quick.split(", ")]
    marked = [pytest.param(*case(each), id=each, marks=pytest.mark.thorough) for each in thorough.split(", ")]
    return pytest.mark.parametrize(("configuration", "processes"), found + marked)


def case(written: str) -> tuple[str, int]:
    configuration, processes = written.split(" on ")
    return configuration, int(processes)


@cases(
    "zero1_fp32 on 1, zero3_fp32 on 1, zero2_bf16 on 1, zero1_fp32 on 2, zero3_fp32 on 2",
    "zero0_fp32 on 1, zero2_fp32 on 1, zero0_bf16 on 1, zero1_bf16 on 1, zero3_bf16 on 1, "
    "zero0_fp32 on 2, zero2_fp32 on 2, zero2_bf16 on 2, zero3_bf16 on 2",
)
def test_one_process_or_two_update_as_plain_torch_does(
    configuration: str, processes: int, plain: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    compare(trained(tmp_path, configuration, processes), plain, TOLERANCE[configuration[-4:]])


@pytest.mark.parametrize("option", ["chunks", "checkpointing"])
@pytest.mark.parametrize(("configuration", "processes"), [("zero1_fp32", 1), ("zero3_fp32", 2)])
def test_tokens_scored_by_chunks_and_gradient_checkpointing_change_no_update(
    configuration: str, processes: int, option: str, plain: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """This holds under ZeRO-3 too, where the ranks' passes have different numbers of chunks."""
    compare(trained(tmp_path, configuration, processes, option), plain, TOLERANCE["fp32"])


@pytest.fixture(scope="module")
def plain_lora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained(tmp_path_factory.mktemp("plain-lora"), "plain", 1, "lora")


@pytest.mark.parametrize(("configuration", "processes"), [("zero1_fp32", 1), ("zero3_fp32", 2)])
def test_low_rank_changes_are_trained_as_by_hand_and_go_on_from_a_checkpoint_bit_for_bit(
    configuration: str, processes: int, plain_lora: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """The loss has a KL term, whose reference is the learner's own model without its changes."""
    whole = trained(tmp_path, configuration, processes, "lora")
    compare(whole, plain_lora, TOLERANCE["fp32"])
    restored = trained(tmp_path, configuration, processes, "lora", "restore")
    assert all(torch.equal(whole[name], restored[name]) for name in whole)


@pytest.mark.thorough
@pytest.mark.parametrize("configuration", ["zero0_fp32", "zero2_bf16", "zero3_bf16"])
def test_low_rank_changes_are_trained_so_under_the_other_configurations(
    configuration: str, plain_lora: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    compare(trained(tmp_path, configuration, 2, "lora"), plain_lora, TOLERANCE[configuration[-4:]])


@pytest.fixture(scope="module")
def plain_rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained(tmp_path_factory.mktemp("plain-rows"), "plain", 1, "lora", "rows")


@pytest.mark.parametrize(
    ("configuration", "processes"),
    [
        ("zero2_fp32", 2),
        *(pytest.param(f"zero{stage}_fp32", 1, marks=pytest.mark.thorough) for stage in (0, 1)),
    ],
)
def test_rows_of_the_embeddings_are_trained_beside_them_and_go_on_from_a_checkpoint_bit_for_bit(
    configuration: str, processes: int, plain_rows: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """Four rows of each table move, as by hand, and no other row does."""
    whole = trained(tmp_path, configuration, processes, "lora", "rows")
    compare(whole, plain_rows, TOLERANCE["fp32"])
    for table in ("model.embed_tokens.weight", "lm_head.weight"):
        assert whole[table].any(1).nonzero().flatten().tolist() == [4, 17, 33, 51]
        compare({table: whole[table]}, {table: plain_rows[table]}, TOLERANCE["fp32"])
    restored = trained(tmp_path, configuration, processes, "lora", "rows", "restore")
    assert all(torch.equal(whole[name], restored[name]) for name in whole)


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("checkpointing",), ("chunks",)])
@pytest.mark.parametrize("configuration", ["zero3_fp32", "zero2_bf16", "zero3_bf16"])
def test_rows_are_trained_so_under_the_other_configurations(
    configuration: str, options: tuple[str, ...], plain_rows: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    whole = trained(tmp_path, configuration, 2, "lora", "rows", *options)
    compare(whole, plain_rows, TOLERANCE[configuration[-4:]])


@pytest.fixture(scope="module")
def plain_values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained(tmp_path_factory.mktemp("plain-values"), "plain", 1, "values")


def test_two_processes_train_a_value_head_as_it_is_trained_by_hand(
    plain_values: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    found = trained(tmp_path, "zero1_fp32", 2, "values")
    compare(found, plain_values, TOLERANCE["fp32"])
    compare({"values": found["values"]}, {"values": plain_values["values"]}, TOLERANCE["fp32"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("configuration", "processes"),
    [("zero0_fp32", 1), ("zero2_fp32", 1), ("zero2_bf16", 2), ("zero3_bf16", 1)],
)
def test_a_value_head_is_trained_so_under_the_other_configurations(
    configuration: str, processes: int, plain_values: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    compare(
        trained(tmp_path, configuration, processes, "values"), plain_values, TOLERANCE[configuration[-4:]]
    )


@pytest.mark.thorough
def test_a_value_head_under_zero_3_with_gradient_checkpointing_goes_on_from_a_checkpoint_bit_for_bit(
    plain_values: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """Two processes must pass through the layers and the head equally often."""
    whole = trained(tmp_path, "zero3_fp32", 2, "values", "checkpointing")
    compare(whole, plain_values, TOLERANCE["fp32"])
    restored = trained(tmp_path, "zero3_fp32", 2, "values", "checkpointing", "restore")
    assert all(torch.equal(whole[name], restored[name]) for name in whole)


def test_a_learner_restored_from_its_checkpoint_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = trained(tmp_path, "zero1_fp32", 1)
    restored = trained(tmp_path, "zero1_fp32", 1, "restore")
    assert all(torch.equal(whole[name], restored[name]) for name in whole)


@pytest.mark.parametrize(
    ("level", "configuration", "processes"),
    [
        ("trajectory", "zero3_fp32", 2),
        pytest.param("trajectory", "zero1_fp32", 1, marks=pytest.mark.thorough),
        pytest.param("turn", "zero1_fp32", 1, marks=pytest.mark.thorough),
        pytest.param("turn", "zero3_fp32", 2, marks=pytest.mark.thorough),
        pytest.param("trajectory", "zero2_fp32", 2, marks=pytest.mark.thorough),
    ],
)
def test_ratios_over_turns_and_trajectories_are_those_of_one_batch_in_one_process(
    level: str, configuration: str, processes: int, tmp_path: Path
) -> None:
    """Passes of twenty tokens split trajectories; plain torch sees them whole."""
    expected = trained(tmp_path, "plain", 1, level)
    compare(trained(tmp_path, configuration, processes, level), expected, TOLERANCE["fp32"])


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, float]]:
    command = [sys.executable, str(FIGURES)]
    finished = subprocess.run(
        command, env=importing(), capture_output=True, text=True, check=False, timeout=300
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    reported: dict[str, dict[str, float]] = json.loads(finished.stdout.splitlines()[-1])
    return reported


@pytest.mark.parametrize("name", ["entropy", "clip_fraction", "gradient_norm"])
def test_figures_are_means_over_what_was_trained(name: str, figures: dict[str, dict[str, float]]) -> None:
    """Two of six samples have no advantage, and one of three minibatches is empty. They do not count."""
    assert figures["found"][name] == pytest.approx(figures["expected"][name], rel=1e-5)


def test_dropout_is_off_in_policy_gradient_steps(figures: dict[str, dict[str, float]]) -> None:
    assert figures["again"] == pytest.approx(figures["found"], rel=1e-5)


def test_every_configuration_is_there_and_an_unknown_one_is_refused_with_their_names() -> None:
    names = {path.stem for path in DEEPSPEED.glob("*.json")}
    assert names == {f"zero{stage}_{dtype}" for stage in range(4) for dtype in ("fp32", "bf16")}
    for name in names:
        assert read_configuration(name)["zero_optimization"]["stage"] == int(name[4])
    with pytest.raises(ValueError, match=r"zero9_fp32.*zero0_bf16, zero0_fp32"):
        read_configuration("zero9_fp32")


def compare(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tolerance: float) -> None:
    """The movement of all weights together differs by at most the share ``tolerance`` of its length."""
    distance = torch.cat([(found[name].float() - expected[name]).flatten() for name in expected]).norm()
    length = torch.cat([value.flatten() for value in expected.values()]).norm()
    assert length > 0
    assert float(distance / length) < tolerance
