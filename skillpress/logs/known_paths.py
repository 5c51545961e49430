"""Formats that a few paths describe: where their runs, messages and outcomes are.

The keys of a record decide its format. tau-bench keeps the messages in ``traj``, tau2-bench in simulations,
whose user may have tools of its own. In the rollouts of NeMo-Gym and the results of verifiers, steps in the
prompt are examples and not the agent's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillpress.environments.calls.steps import unfolded
from skillpress.logs.chat import messages_in
from skillpress.logs.paths import value_at
from skillpress.logs.read_by_paths import Paths, ReadByPaths


@dataclass(frozen=True)
class KnownPaths(ReadByPaths):
    """The functions of a format that is recognised by its keys."""

    name: str = ""
    keys: frozenset[str] = frozenset()
    """Keys that all of its records have."""
    some: frozenset[str] = frozenset()
    """Keys of which each record has at least one; empty means no such condition."""

    def recognises(self, record: Any) -> bool:
        """Whether the record has the keys, and messages where they should be."""
        if not isinstance(record, dict) or not record.keys() >= self.keys:
            return False
        if self.some and not self.some & record.keys():
            return False
        messages = unfolded(value_at(record, self.paths.messages))
        return messages_in(messages) is not None or (messages == [] and len(self.paths.prompt) > 0)

    def _session(self, record: Any) -> str:
        return ""


def _known(name: str, keys: str, paths: Paths, some: str = "") -> KnownPaths:
    return KnownPaths(paths, name, keys=frozenset(keys.split()), some=frozenset(some.split()))


TABLE = (
    _known("tau-bench results", "traj", Paths(["traj"], name=["id", "task_id"], outcome=["reward"])),
    _known(
        "tau-bench results",
        "reward_info messages",
        Paths(
            ["messages"],
            run=["simulations"],
            name=["id", "task_id"],
            version=["info.agent_info.llm", "info.agent_info.implementation"],
            outcome=["reward_info.reward"],
        ),
    ),
    _known(
        "NeMo-Gym rollouts",
        "responses_create_params response",
        Paths(
            ["response.output"],
            prompt=["responses_create_params.input"],
            name=["response.id"],
            task=["task_id", "instance_id", "_ng_task_index", "task_index", "uuid", "id"],
            outcome=["reward"],
        ),
    ),
    _known(
        "verifiers results",
        "prompt completion",
        Paths(["completion"], prompt=["prompt"], task=["example_id", "task"], outcome=["reward"]),
        some="reward example_id metrics is_completed is_truncated answer task",
    ),
)
