"""What the engines ``vllm`` and ``server`` ask of vLLM: memory, seeds where they are wanted, weights by NCCL.

vLLM is not installed beside these tests. A list takes the calls that only a GPU or vLLM can answer, in their
order; the engine, the weights, the requests and torch's generators are real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from skillpress.core.engine import Request, Sampling
from skillpress.models.engines.checks import shapes_of
from skillpress.models.engines.generate import generate
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.serve import ServerOptions
from skillpress.models.engines.server import ServerParameters
from skillpress.models.engines.server.delivery import by_collectives
from skillpress.models.engines.vllm.engine import VllmEngine
from skillpress.rollouts.workers.distributed import Ranks
from tests.support.models.protocol_server import ProtocolServer
from tests.support.models.tiny import tiny_policy

CACHE_EMPTIED = "torch's cache is emptied"


class Calls(list[Any]):
    """Takes the calls of vLLM's ``LLMEngine``. For each request it draws a number, as vLLM does for a row
    without a seed: from torch's generator."""

    def wake_up(self, tags: Sequence[str]) -> None:
        self.append(("wakes", *tags))

    def collective_rpc(self, method: str, kwargs: dict[str, Any]) -> None:
        self.append((method, len(dict(kwargs["weights_iterator"]))))

    def reset_prefix_cache(self) -> bool:
        return True

    def add_request(self, key: str, prompt: dict[str, Any], parameters: dict[str, Any]) -> None:
        self.append((parameters["seed"], float(torch.rand(())), float(np.random.random())))

    def sleep(self, level: int) -> None:
        self.append("sleeps")


Make = Callable[..., tuple[VllmEngine, Calls]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """An engine over such a list."""

    def make(seeded: bool = False) -> tuple[VllmEngine, Calls]:
        engine, calls, policy = object.__new__(VllmEngine), Calls(), tiny_policy()
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(CACHE_EMPTIED))
        engine.version, engine._open, engine._seeded = 0, {}, seeded
        engine._engine, engine._on_gpu, engine._asleep = calls, True, False
        engine._shapes, engine._stop = shapes_of(policy.model.state_dict()), [3]
        engine._longest, engine._vocabulary = 64, policy.vocabulary
        engine._vllm = SimpleNamespace(
            SamplingParams=dict,
            sampling_params=SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY="final")),
        )
        return engine, calls

    return make


def asked(engine: VllmEngine, seeds: Sequence[int]) -> None:
    """Submit a batch; its requests stay open."""
    prompt, sampling = (1, 2), Sampling(max_new_tokens=4)
    engine.submit([Request(key, prompt, sampling, seed) for key, seed in enumerate(seeds)])


def test_torch_gives_its_memory_back_before_each_wake_of_vllm(make: Make) -> None:
    engine, calls = make()
    weights = tiny_policy(seed=1).model.state_dict()
    engine.sleep()
    engine.update_weights(weights, 1)
    engine.wake()
    assert calls == [
        "sleeps", CACHE_EMPTIED, ("wakes", "weights"), ("reload_weights", len(weights)),
        CACHE_EMPTIED, ("wakes", "kv_cache"),
    ]  # fmt: skip


def test_an_engine_that_is_awake_empties_nothing(make: Make) -> None:
    engine, calls = make()
    engine.update_weights(tiny_policy(seed=1).model.state_dict(), 1)
    engine.wake()
    assert CACHE_EMPTIED not in calls


def test_a_batch_without_seeds_repeats_by_its_first_requests_seed(make: Make) -> None:
    engine, calls = make()
    for seeds in ((5, 6, 2**63), (5, 6, 2**63), (7, 6, 5)):
        asked(engine, seeds)
        engine._open.clear()  # as if answered
    first, again, other = calls[:3], calls[3:6], calls[6:]
    assert first == again and all(seed is None for seed, *_ in calls)
    assert not {draw for _, *draws in first for draw in draws} & {
        draw for _, *draws in other for draw in draws
    }


def test_requests_that_join_a_batch_do_not_begin_its_numbers_again(make: Make) -> None:
    engine, calls = make()
    asked(engine, [5])
    asked(engine, [5])
    assert calls[0] != calls[1]


def test_requests_have_seeds_where_they_are_asked_for(make: Make) -> None:
    engine, calls = make(seeded=True)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    asked(engine, [5, 2**63])
    assert [seed for seed, *_ in calls] == [5, 2**63]
    torch.set_rng_state(before)
    assert calls[0][1] == float(torch.rand(())), "and the process keeps its own random numbers"


@pytest.mark.parametrize("seeded", [False, True])
def test_servers_are_sent_seeds_where_they_are_asked_for(seeded: bool) -> None:
    with ProtocolServer(tiny_policy(), longest=28) as server:
        section = ServerParameters(name="server", urls=[server.url], answer_seconds=20.0, seeded=seeded)
        engine = section.make(tiny_policy(), EngineDemand(longest=28, slots=4, ranks=Ranks()))
        found = generate(engine, [(1, 2), (3,)], Sampling(max_new_tokens=2), [8, 9])
        engine.close()
    assert len(found) == 2 and sorted(server.seeds, key=str) == ([8, 9] if seeded else [None, None])


def test_two_servers_draw_different_numbers() -> None:
    options = ServerOptions(model="m", port=1, longest=9, dtype="float32")
    seeds = {command[command.index("--seed") + 1] for command in (options.command(True) for _ in range(3))}
    assert len(seeds) == 3


@pytest.mark.parametrize(("transfer", "on_cpu", "on_gpu"), [
    ("auto", False, True), ("http", False, False), ("collective", True, True),
])  # fmt: skip
def test_weights_travel_by_collectives_between_gpus_by_default(
    transfer: str, on_cpu: bool, on_gpu: bool
) -> None:
    found = [by_collectives(transfer, torch.device(kind)) for kind in ("cpu", "cuda")]
    assert found == [on_cpu, on_gpu]
