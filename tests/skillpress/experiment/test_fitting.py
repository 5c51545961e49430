"""Experiments fit into the devices that the estimate accepts, and servers take GPUs beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillpress.experiment.estimate import imitation_memory, memory_by_phase, training_memory
from skillpress.experiment.fitting import (
    GIB,
    MARGIN,
    SERVING,
    Devices,
    demand,
    fits,
    fullest,
    rows_of_server,
    servers_here,
)
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.training.loop.optimizer import read_configuration

ROOT = Path(__file__).parents[3]
PAPER = sorted(path.stem for path in (ROOT / "params").glob("paper_*.yaml"))
GB = 10**9
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


def node(count: int, **options: Any) -> Devices:
    return Devices(f"{count} devices", 80 * GB, count, **options)


def test_only_servers_at_this_machines_own_addresses_take_its_gpus() -> None:
    urls = ["http://127.0.0.1:8801", "http://localhost:8802", "http://[::1]:8803", "http://10.0.0.5:8801"]
    engine = {"name": "server", "urls": urls, "answer_seconds": 600.0}
    _, params, _ = experiment("paper_alfworld", engine=engine)
    assert servers_here(params) == urls[:3]
    assert node(11).suffice(params) and not node(10).suffice(params)
    assert servers_here(experiment("paper_alfworld")[1]) == []


def test_more_processes_than_devices_do_not_fit() -> None:
    _, params, shape = experiment("paper_alfworld")
    assert not fits(params, shape, Devices("four", 10**15, 4))


def test_a_server_holds_its_share_of_the_weights_and_its_cache() -> None:
    """16 tasks x 8 rollouts of a step, shared by four servers; two bytes of each of the weights."""
    _, params, shape = experiment("paper_alfworld", "servers")
    assert rows_of_server(params) == 16 * 8 // 4
    held = fullest(params, shape, node(12, server_gpus=2, server_cache=70.0))
    assert held.phase == SERVING
    assert dict(held.parts) == {"server: weights": 1_543_714_304, "server: keys and values": 70 * GIB}
    assert fullest(params, shape, node(8)).phase == "updating", "the process takes more"
    assert fits(params, shape, node(8)) and not fits(params, shape, node(8, server_cache=70.0))
