"""Plays at an address with OpenEnv's own client, in the environment that has it; prints the results as JSON.

python openenv_client_program.py URL
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from openenv.core import EnvClient, GenericEnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import Action, Observation, State

WINS = ("op(+, 2, 1)", "op(+, 3, 3)")


class TextAction(Action):
    message: str


class TextObservation(Observation):
    text: str
    admissible: list[str]
    action: str | None
    invalid: str | None
    won: bool
    lost: str | None
    truncated: bool
    measures: dict[str, float]


class TextEnv(EnvClient[TextAction, TextObservation, State]):
    """A typed client, written as a subclass like in the package's documentation."""

    def _step_payload(self, action: TextAction) -> dict[str, Any]:
        return dict(action.model_dump())

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextObservation]:
        observation = TextObservation(
            **payload["observation"], done=payload["done"], reward=payload.get("reward")
        )
        return StepResult(observation=observation, reward=payload.get("reward"), done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def generic(url: str) -> dict[str, Any]:
    """Plays with dictionaries, one call after another."""
    with GenericEnvClient(base_url=url) as client:
        first = client.reset(seed=0, episode_id="mine")
        rewards = [client.step({"message": action}).reward for action in WINS]
        state = client.state()
        errors = []
        mistakes: tuple[Callable[[], object], ...] = (
            lambda: client.step({"message": "reset"}),
            lambda: client.reset(sead=1),
        )
        for mistake in mistakes:
            try:
                mistake()
            except RuntimeError as error:
                errors.append(str(error))
        again = client.reset(seed=0)
    return {
        "first": first.observation["text"], "rewards": rewards, "state": state, "errors": errors,
        "again": again.observation["text"],
    }  # fmt: skip


async def typed(url: str) -> dict[str, Any]:
    """Plays with records, in two sessions at once."""
    async with TextEnv(base_url=url) as one, TextEnv(base_url=url) as other:
        await asyncio.gather(one.reset(seed=0), other.reset(seed=1))
        answers = await asyncio.gather(
            one.step(TextAction(message=WINS[0])), other.step(TextAction(message=WINS[0]))
        )
        last = await one.step(TextAction(message=WINS[1]))
        state = await one.state()
    texts = [answer.observation.text for answer in answers]
    return {"texts": texts, "won": last.observation.won, "done": last.done, "steps": state.step_count}


if __name__ == "__main__":
    address = sys.argv[1]
    print(json.dumps({"generic": generic(address), "typed": asyncio.run(typed(address))}))
