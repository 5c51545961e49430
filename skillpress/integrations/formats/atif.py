"""ATIF 1.7, the Agent Trajectory Interchange Format of the Harbor framework: episodes as JSON documents.

One document holds one episode. Its first step is the environment's first observation (source ``user``). Every
decision is a step of the agent with

    message             the policy's answer, word by word; ``reasoning_content`` is the thought in it
    tool_calls          one call of ``act`` with the action, unless no action could be read
    observation         the environment's answer
    metrics             the exact token ids of prompt and response, and the log-probabilities
    extra               ``reward``, its parts, why the action was invalid, and which weights sampled it

If decisions are a tree, as with sub-agents, ``extra.continues`` is the ``step_id`` of the decision whose
conversation each continues, or null if it begins one. A decision that summarises the past is a step of the
agent without a call and an observation, with ``extra.summary``. The document's ``extra`` holds the episode's
identity and outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skillpress.core.beginnings import conversations
from skillpress.core.storage import atomic_directory, atomic_path
from skillpress.core.trajectory import Step, Trajectory
from skillpress.core.version import __version__
from skillpress.integrations.formats.texts import Said, Texts, facts

VERSION = "ATIF-v1.7"
ACT = "act"
"""The function that every action calls; its argument is ``action``."""
ENDING = ("run", "seed", "won", "terminated", "truncated", "outcome")
"""The fields of an episode that say how it ended and to which run it belongs."""


def write_atif(output: Path, episodes: Iterable[Trajectory], texts: Texts) -> None:
    """Write episodes, atomically. If ``output`` ends in ``.jsonl``, write one document per line; otherwise
    write a folder with one file each, ``000000.json`` and so on."""
    documents = (json.dumps(document(each, texts), ensure_ascii=False) for each in episodes)
    if output.suffix == ".jsonl":
        with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in documents)
        return
    with atomic_directory(output) as folder:
        for number, line in enumerate(documents):
            (folder / f"{number:06d}.json").write_text(line + "\n", encoding="utf-8")


def document(trajectory: Trajectory, texts: Texts) -> dict[str, Any]:
    """An episode as ATIF's ``Trajectory``."""
    name = f"{trajectory.group_id}/{trajectory.rollout_index}"
    seen: dict[str, Any] = {"step_id": 1, "source": "user", "message": trajectory.first_observation}
    decisions = trajectory.decisions
    pairs = enumerate(zip(decisions, texts(trajectory), strict=True), start=2)
    steps = [_step(number, step, said) for number, (step, said) in pairs]
    before = conversations([(step.prompt_ids, step.response_ids) for step in decisions])
    for step, one in zip(steps, before, strict=False):
        step["extra"]["continues"] = None if one is None else one.call + 2
    return {
        "schema_version": VERSION,
        "session_id": name,
        "trajectory_id": name,
        "agent": {
            "name": "skillpress",
            "version": __version__,
            **({"model_name": trajectory.policy} if trajectory.policy else {}),
        },
        "steps": [seen, *steps],
        "final_metrics": {
            "total_prompt_tokens": sum(len(step.prompt_ids) for step in trajectory.decisions),
            "total_completion_tokens": sum(len(step.response_ids) for step in trajectory.decisions),
            "total_steps": 1 + len(steps),
            "extra": {"reward": trajectory.total_reward},
        },
        "extra": facts(trajectory, *ENDING),
    }


def _step(number: int, step: Step, said: Said) -> dict[str, Any]:
    """A decision as ATIF's ``Step``; fields without content are left out."""
    call = f"call_{number}"
    calls = [{"tool_call_id": call, "function_name": ACT, "arguments": {"action": step.action}}]
    result = {"content": step.observation, **({"source_call_id": call} if step.action else {})}
    return {
        "step_id": number,
        "source": "agent",
        "message": said.answer,
        **({"reasoning_content": step.thought} if step.thought else {}),
        **({"tool_calls": calls} if step.action else {}),
        **({} if said.summary else {"observation": {"results": [result]}}),
        **({"metrics": _metrics(step)} if step.prompt_ids else {}),
        "extra": {
            "reward": step.reward,
            "reward_parts": [asdict(part) for part in step.reward_parts],
            **({"invalid": step.invalid} if step.invalid is not None else {}),
            **({"weight_spans": [asdict(span) for span in step.weight_spans]} if step.weight_spans else {}),
            **({"summary": True} if said.summary else {}),
        },
    }


def _metrics(step: Step) -> dict[str, Any]:
    return {
        "prompt_tokens": len(step.prompt_ids),
        "completion_tokens": len(step.response_ids),
        "prompt_token_ids": list(step.prompt_ids),
        "completion_token_ids": list(step.response_ids),
        "logprobs": step.logprobs.tolist(),
    }
