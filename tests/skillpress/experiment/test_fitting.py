"""Experiments fit into the devices that the estimate accepts, and with the changes that it proposes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.experiment.disk import step_bytes
from skillpress.experiment.estimate import imitation_memory, memory_by_phase, training_memory
from skillpress.experiment.fitting import demand, fits
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.node import MARGIN, Devices
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.experiment.remedies import changed, remedies
from skillpress.learn.training.learner import read_configuration

ROOT = Path(__file__).parents[3]
PAPER = sorted(path.stem for path in (ROOT / "params").glob("paper_*.yaml"))
GB = 10**9
TOO_SMALL = [
    (("paper_notebook_qa",), 24 * GB),
    (("paper_notebook_qa",), 40 * GB),
]
"""Devices on which a float32 copy of seven billion weights does not fit together with the engine's
weights."""
EIGHT = Devices("eight cards", 80 * GB, 8)


def values_of(*overlays: str) -> dict[str, Any]:
    values = read_yaml(ROOT / "params.yaml")
    for overlay in overlays:
        values = merge(values, read_yaml(ROOT / "params" / f"{overlay}.yaml"))
    return values


def experiment(*overlays: str, **sections: dict[str, Any]) -> tuple[dict[str, Any], Params, ModelShape]:
    values = merge(values_of(*overlays), sections)
    params = check_params(values, source="a test")
    return values, params, KNOWN_SHAPES[params.policy.model]


@pytest.mark.parametrize("overlay", PAPER)
def test_the_papers_experiments_fit_eight_cards_of_80_gb_with_a_margin(overlay: str) -> None:
    _, params, shape = experiment(overlay)
    assert params.processes == 8 and fits(params, shape, EIGHT)
    assert demand(params, shape, on_gpu=True).size <= (1 - MARGIN) * 80 * GB


@pytest.mark.parametrize(
    ("overlays", "devices"),
    [
        *product(
            [(name,) for name in PAPER],
            [Devices("one", 24 * GB, 1), Devices("one", 80 * GB, 1), Devices("two", 40 * GB, 2),
             Devices("eight", 40 * GB, 8), Devices("many", 24 * GB, 64), Devices("machine", 128 * GB, None)],
        ),
        *product(
            [("smollm2",), ("smollm2", "lag"), ("smollm2", "ppo")],
            [Devices("one", 8 * GB, 1), Devices("machine", 16 * GB, None)],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else f"{value.count}x{value.memory // GB}",
)  # fmt: skip
def test_what_is_said_to_make_an_experiment_fit_does_so_and_is_needed(
    overlays: tuple[str, ...], devices: Devices
) -> None:
    values, params, shape = experiment(*overlays)
    if fits(params, shape, devices):
        return
    found = remedies(values, shape, devices)
    assert found or (overlays, devices.memory) in TOO_SMALL
    for changes in found:
        other = changed(values, changes)
        assert other is not None and fits(other, shape, devices), changes
        for key in changes:
            fewer = changed(values, {name: changes[name] for name in changes if name != key})
            assert fewer is None or not fits(fewer, shape, devices), f"{key} of {changes} changes nothing"


def test_one_card_takes_a_model_of_7b_by_an_adapter() -> None:
    values, _, shape = experiment("paper_notebook_qa")
    lora = {"training.lora": {"rank": 32, "alpha": 64}}
    assert remedies(values, shape, Devices("one", 80 * GB, 1)) == [{"processes": 1, **lora}]
    alone = merge(values, {"processes": 1})
    assert remedies(alone, shape, Devices("one", 80 * GB, 1)) == [lora]


def test_more_processes_than_devices_do_not_fit_and_fewer_are_proposed() -> None:
    values, params, shape = experiment("paper_alfworld")
    four = Devices("four", 10**15, 4)
    assert not fits(params, shape, four)
    assert remedies(values, shape, four) == [{"processes": 4}]


def test_processes_share_the_memory_of_a_machine_without_gpus() -> None:
    params = check_params(merge(values_of("smollm2"), {"processes": 2}), source="a test")
    shape = KNOWN_SHAPES["smollm2-135m"]
    most = demand(params, shape, on_gpu=False).size
    assert fits(params, shape, Devices("machine", int(2 * most / (1 - MARGIN)) + 2, None))
    assert not fits(params, shape, Devices("machine", int(1.9 * most / (1 - MARGIN)), None))


def test_with_a_lag_of_k_k_less_1_copies_of_the_weights_wait_but_servers_need_none() -> None:
    """135 million parameters; the learner's weights are in float32."""
    servers = {"name": "server", "urls": ["http://127.0.0.1:1"], "answer_seconds": 1.0}

    def asked(lag: int, **sections: Any) -> int:
        _, params, shape = experiment("smollm2", training={"lag": lag, "deepspeed": "zero1_fp32"}, **sections)
        return demand(params, shape, on_gpu=False).size

    copy = 4 * KNOWN_SHAPES["smollm2-135m"].parameters
    assert asked(4) - asked(1) == 3 * copy
    assert asked(4, engine=servers) == asked(1, engine=servers)


def test_nothing_is_said_where_nothing_helps() -> None:
    values, _, shape = experiment("paper_notebook_qa")
    assert remedies(values, shape, Devices("tiny", GB, 1)) == []


def test_processes_share_the_copy_and_the_moments_of_imitation() -> None:
    """SmolLM2 in bfloat16 over 8 processes: a process owns an eighth, and the embeddings at most."""
    _, params, shape = experiment("smollm2")
    parts = imitation_memory(params.model_copy(update={"processes": 8}), shape)
    own = -(-shape.parameters // 8) + 49_152 * 576
    found = {
        name: parts[f"imitation: {name}"] for name in ("float32 copy", "moments", "gradients", "weights")
    }
    assert found == {
        "float32 copy": 4 * own,
        "moments": 8 * own,
        "gradients": 6 * shape.parameters,
        "weights": 2 * shape.parameters,
    }
    assert parts["imitation: updated weights on their way"] == 2 * own


def test_imitation_is_counted_whole_in_one_process_and_bounded_as_training_is() -> None:
    """SmolLM2 in bfloat16, calculated by hand: 2 bytes of weight, 4 of copy, 2 + 4 of gradient, 8 of
    moments."""
    _, params, shape = experiment("smollm2")
    many = params.training.model_copy(update={"microbatch_tokens": 16_384})
    params = params.model_copy(update={"training": many})
    parts, count = imitation_memory(params, shape), shape.parameters
    state = {"weights": 2, "float32 copy": 4, "gradients": 6, "moments": 8}
    assert {name: parts[f"imitation: {name}"] / count for name in state} == state
    smaller = params.training.model_copy(update={"microbatch_tokens": 4096})
    less = imitation_memory(params.model_copy(update={"training": smaller}), shape)
    assert less["imitation: activations"] == parts["imitation: activations"] / 4
    checkpointed = params.training.model_copy(update={"gradient_checkpointing": True})
    few = imitation_memory(params.model_copy(update={"training": checkpointed}), shape)
    assert few["imitation: activations"] < parts["imitation: activations"] / 4
    assert imitation_memory(*experiment("paper_alfworld")[1:]) == {}


def test_without_training_steps_the_memory_is_that_of_playing_and_imitating() -> None:
    _, params, shape = experiment("smollm2", "imitation")
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    imitating = sum(imitation_memory(params, shape).values())
    assert demand(params, shape, on_gpu=True).size == imitating
    assert memory_by_phase(parts, False, True)["updating"] > 0


def test_a_file_of_rollouts_takes_no_more_than_is_said_and_not_far_less(tmp_path: Path) -> None:
    """Steps fill their budgets with tokens that cannot be compressed."""
    _, params, shape = experiment("smollm2")
    random = np.random.default_rng(0)

    def text(characters: int) -> str:
        return bytes(random.integers(33, 126, characters).tolist()).decode()

    def step() -> Step:
        response = params.sampling.max_new_tokens
        prompt = tuple(random.integers(0, 49_152, params.policy.context_tokens).tolist())
        said = tuple(random.integers(0, 49_152, response).tolist())
        logprobs = tuple(random.normal(size=response).tolist())
        return Step(prompt, said, logprobs, text(3 * response), text(60), text(3 * response), None, ())

    steps = tuple(step() for _ in range(60))
    played = [Trajectory("t", "g", 0, steps, False, False, True, "timeout", 0, 0)]
    write_rollouts(tmp_path / "rollouts.parquet", played)
    measured = (tmp_path / "rollouts.parquet").stat().st_size / len(steps)
    assert measured <= step_bytes(params, shape) <= 3 * measured
