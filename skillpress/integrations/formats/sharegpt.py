"""ShareGPT: one JSON line per episode, with the dialogue between environment and policy.

``conversations`` alternates: ``human`` is what the environment says, from its first observation on, and
``gpt`` is the policy's answer. It ends with an answer, because the last observation has none. An agent's
summaries of its own past are not turns. The wording of the prompt is left out; the export to Hugging Face
``datasets`` has it. In addition, ``actions`` has the action of each answer as the environment read it, and
``refused`` whether it was invalid, so that ``skillpress skills`` reads the file like the rollouts themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skillpress.core.storage import atomic_path
from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.texts import Texts, facts


def write_sharegpt(output: Path, episodes: Iterable[Trajectory], texts: Texts) -> None:
    """Write episodes as JSON lines, atomically."""
    with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line(each, texts), ensure_ascii=False) + "\n" for each in episodes)


def line(trajectory: Trajectory, texts: Texts) -> dict[str, Any]:
    """One episode."""
    answers = [said.answer for said in texts(trajectory) if not said.summary]
    heard = [trajectory.first_observation, *(step.observation for step in trajectory.steps)]
    turns = zip(heard, answers, strict=False)  # the last observation has no answer
    return {
        "id": f"{trajectory.group_id}/{trajectory.rollout_index}",
        "conversations": [
            {"from": speaker, "value": text}
            for pair in turns
            for speaker, text in zip(("human", "gpt"), pair, strict=True)
        ],
        "actions": [step.action for step in trajectory.steps],
        "refused": [step.invalid is not None for step in trajectory.steps],
        **facts(trajectory, "won", "outcome"),
        "reward": trajectory.total_reward,
    }
