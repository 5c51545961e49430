"""OpenEnv's messages as a server reads and writes them: JSON texts with a ``type`` and ``data``.

    {"type": "reset", "data": {"seed": 7}}            {"type": "observation", "data": {"observation": {...},
    {"type": "step", "data": {"message": "..."}}   ->     "reward": 10.0, "done": true, "metadata": {...}}}
    {"type": "state"}                                 {"type": "state", "data": {...}}
    {"type": "close"}                                 {"type": "error", "data": {"message": ..., "code": ...}}

An action is a text in the field ``message``, which is what the protocol's text games call it. The models
below are also the schemas that ``GET /schema`` tells. An unknown key is refused and never ignored: a
misspelt ``seed`` would otherwise play another task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.play.rollout import StepResult

ErrorCode = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]  # fmt: skip
"""The protocol's."""
SHOWN = 200
"""Characters of a wrong value that an error repeats."""


class RefusedError(Exception):
    """A message that cannot be answered as it was meant."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ResetArguments(BaseModel):
    """What a reset may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    seed: Annotated[int, Field(ge=0)] | None = None
    """Chooses the task: the same seed, the same task."""
    task_id: str | None = None
    """Chooses the task by its name."""
    episode_id: Annotated[str, Field(max_length=255)] | None = None
    """What the caller calls the episode."""


class Action(BaseModel):
    """One action."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str
    """In the environment's wording; any text is an action."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Typed clients send it; nobody looks at it."""


class Observation(BaseModel):
    """What the environment says. The reward stands beside it, since it is no fact of the environment's."""

    text: str
    """What the agent sees."""
    admissible: list[str] = Field(default_factory=list)
    """Every action that would be carried out now; empty where the environment does not tell."""
    action: str | None = None
    """The last action in the canonical wording; null after a reset, or when it could not be read."""
    invalid: str | None = None
    """Why the last action changed nothing; null when it was carried out."""
    won: bool = False
    lost: str | None = None
    """Why the episode is lost for good."""
    truncated: bool = False
    """Whether the steps ran out."""
    measures: dict[str, float] = Field(default_factory=dict)
    """Facts in numbers about the step, by name."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """``task_id``, ``split`` and ``stratum`` of the task."""


class EpisodeState(BaseModel):
    """What ``state`` answers."""

    episode_id: str | None = None
    """Null before the first reset."""
    step_count: int = 0
    environment: str
    task_id: str | None = None
    done: bool = False
    total_reward: float = 0.0
    """Of all steps so far."""


@dataclass(frozen=True)
class Message:
    """One that was read."""

    kind: Literal["reset", "step", "state", "close"]
    data: Mapping[str, Any] = field(default_factory=dict)


_KINDS: Mapping[str, Message] = {"state": Message("state"), "close": Message("close")}


def read(text: str) -> Message:
    """The message in a text.

    Raises:
        RefusedError: it is none.
    """
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise RefusedError("INVALID_JSON", f"Invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise RefusedError("VALIDATION_ERROR", 'a message is an object such as {"type": "reset", "data": {}}')
    kind, data = found.get("type"), found.get("data", {})
    if kind in ("state", "close"):
        return _KINDS[kind]
    if kind not in ("reset", "step"):
        raise RefusedError(
            "UNKNOWN_TYPE", f"unknown message type {str(kind)[:SHOWN]!r}; there are reset, step, state, close"
        )
    if not isinstance(data, dict):
        raise RefusedError("VALIDATION_ERROR", f"data of a {kind} must be an object")
    return Message(kind, data)


def reset_arguments(data: Mapping[str, Any]) -> ResetArguments:
    """What a reset asks for.

    Raises:
        RefusedError: a key is unknown, or a value is of the wrong kind.
    """
    try:
        return ResetArguments.model_validate(data)
    except ValidationError as error:
        raise RefusedError("VALIDATION_ERROR", _described("reset", error)) from None


def action_text(data: Mapping[str, Any]) -> str:
    """The action of a step.

    Raises:
        RefusedError: it has no ``message``, or something else.
    """
    try:
        return Action.model_validate(data).message
    except ValidationError as error:
        raise RefusedError("VALIDATION_ERROR", _described("step", error)) from None


def observation(task: Task, answer: StepResult, reward: float | None) -> str:
    """The answer to a reset or a step; ``reward`` is None after a reset."""
    info: Info = answer.info
    about = {"task_id": task.task_id, "split": task.split, "stratum": task.stratum}
    seen = Observation(
        text=answer.observation,
        admissible=list(info.admissible),
        action=info.action,
        invalid=info.invalid,
        won=info.won,
        lost=info.lost,
        truncated=answer.truncated,
        measures=dict(info.measures),
        metadata=about,
    )
    done = answer.terminated or answer.truncated
    data = {"observation": seen.model_dump(), "reward": reward, "done": done, "metadata": about}
    return json.dumps({"type": "observation", "data": data})


def state(found: EpisodeState) -> str:
    """The answer to a question for the state."""
    return json.dumps({"type": "state", "data": found.model_dump()})


def error(code: ErrorCode, message: str, **details: int) -> str:
    """The answer to what cannot be answered."""
    return json.dumps({"type": "error", "data": {"message": message, "code": code, **details}})


def schemas() -> dict[str, Any]:
    """What ``GET /schema`` answers."""
    return {
        "action": Action.model_json_schema(),
        "observation": Observation.model_json_schema(),
        "reset_observation": Observation.model_json_schema(),
        "state": EpisodeState.model_json_schema(),
    }


def _described(what: str, error: ValidationError) -> str:
    wrong = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, wrong["loc"])) or "data"
    allowed = {"reset": "seed, task_id, episode_id", "step": "message, metadata"}[what]
    if wrong["type"] == "extra_forbidden":
        return f"{what}: unknown key {place[:SHOWN]!r}; allowed: {allowed}"
    return f"{what}: {place}: {wrong['msg']} (allowed: {allowed})"
