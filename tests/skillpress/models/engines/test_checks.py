"""Requests that vLLM's engines cannot sample from are refused before an engine starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.models.engines.parameters import EngineDemand, EngineParameters
from skillpress.models.engines.server import ServerParameters
from skillpress.models.engines.vllm import VllmParameters
from skillpress.models.policy import load_policy
from skillpress.rollouts.workers.distributed import Ranks
from tests.support.models.folders import IN_PARTS, gemma3, write_folder


@pytest.mark.parametrize(
    "section",
    [
        VllmParameters(name="vllm", cache_gib=1.0),
        ServerParameters(name="server", urls=["http://127.0.0.1:1"], answer_seconds=1.0),
    ],
    ids=["vllm", "server"],
)
def test_a_multimodal_model_is_refused(tmp_path: Path, section: EngineParameters) -> None:
    policy = load_policy(write_folder(tmp_path / "gemma", gemma3(), template=IN_PARTS))
    demand = EngineDemand(longest=64, slots=1, ranks=Ranks())
    with pytest.raises(UserError, match=f"engine.name: {section.name} supports only text models"):
        section.make(policy, demand)
