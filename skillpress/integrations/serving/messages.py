"""OpenEnv's messages as a server reads and writes them: JSON texts with ``type`` and ``data``.

    {"type": "reset", "data": {"seed": 7}}            {"type": "observation", "data": {"observation": {...},
    {"type": "step", "data": {"message": "..."}}   ->     "reward": 10.0, "done": true, "metadata": {...}}}
    {"type": "state"}                                 {"type": "state", "data": {...}}
    {"type": "close"}                                 {"type": "error", "data": {"message": ..., "code": ...}}

An action is a text in the field ``message``, the name that the protocol's text games use. The models below
are also the schemas of ``GET /schema``. An unknown key is refused, never ignored: a misspelt ``seed`` would
otherwise play another task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import StepResult

ErrorCode = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]  # fmt: skip
"""The protocol's error codes."""
SHOWN = 200
"""The most characters of a wrong value that an error repeats."""


class RefusedMessageError(Exception):
    """A message that the server refuses to answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ResetArguments(BaseModel):
    """The arguments of a reset."""

    model_config = ConfigDict(extra="forbid", strict=True)

    seed: Annotated[int, Field(ge=0)] | None = None
    """Chooses the task: the same seed gives the same task."""
    task_id: str | None = None
    """Chooses the task by name."""
    episode_id: Annotated[str, Field(max_length=255)] | None = None
    """The caller's name for the episode."""


class ActionMessage(BaseModel):
    """One action."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str
    """The action in the environment's wording; any text is an action."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Sent by typed clients and ignored here."""


class Observation(BaseModel):
    """The environment's answer. The reward is not part of it, because the environment does not decide it."""

    text: str
    """The text that the agent sees."""
    admissible: list[str] = Field(default_factory=list)
    """Every action that would be carried out now; empty if the environment does not list them."""
    action: str | None = None
    """The last action in the canonical wording; null after a reset, or if it could not be read."""
    invalid: str | None = None
    """Why the last action changed nothing; null if it was carried out."""
    won: bool = False
    lost: str | None = None
    """Why the episode cannot be won any more."""
    truncated: bool = False
    """Whether the steps ran out."""
    measures: dict[str, float] = Field(default_factory=dict)
    """Numbers about the step, by name."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """``task_id``, ``split`` and ``stratum`` of the task."""


class AnswerMessage(BaseModel):
    """The answer to a reset or a step."""

    observation: Observation
    reward: float | None
    """None after a reset."""
    done: bool
    metadata: dict[str, Any]
    """The observation's metadata."""


class EpisodeState(BaseModel):
    """The answer to ``state``."""

    episode_id: str | None = None
    """Null before the first reset."""
    step_count: int = 0
    environment: str
    task_id: str | None = None
    done: bool = False
    total_reward: float = 0.0
    """Sum over all steps so far."""


@dataclass(frozen=True)
class ClientMessage:
    """A message that was read."""

    kind: Literal["reset", "step", "state", "close"]
    data: Mapping[str, Any] = field(default_factory=dict)


Data = TypeVar("Data", bound=BaseModel)


def read(text: str) -> ClientMessage:
    """The message in a text.

    Raises:
        RefusedError: the text is not a message.
    """
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is not text
    except (ValueError, RecursionError) as error:
        raise RefusedMessageError("INVALID_JSON", f"Invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise RefusedMessageError(
            "VALIDATION_ERROR", 'a message is an object such as {"type": "reset", "data": {}}'
        )
    kind, data = found.get("type"), found.get("data", {})
    if kind in ("state", "close"):
        return ClientMessage(kind)
    if kind not in ("reset", "step"):
        raise RefusedMessageError(
            "UNKNOWN_TYPE", f"unknown message type {str(kind)[:SHOWN]!r}; there are reset, step, state, close"
        )
    if not isinstance(data, dict):
        raise RefusedMessageError("VALIDATION_ERROR", f"data of a {kind} must be an object")
    return ClientMessage(kind, data)


def reset_arguments(data: Mapping[str, Any]) -> ResetArguments:
    """The arguments of a reset message.

    Raises:
        RefusedError: a key is unknown, or a value has the wrong type.
    """
    return checked(ResetArguments, "reset", data)


def action_text(data: Mapping[str, Any]) -> str:
    """The action of a step.

    Raises:
        RefusedError: the data have no ``message``, or an unknown key.
    """
    return checked(ActionMessage, "step", data).message


def answer_of(task: Task, answer: StepResult, reward: float | None) -> AnswerMessage:
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
    return AnswerMessage(observation=seen, reward=reward, done=done, metadata=about)


def written(kind: Literal["observation", "state"], data: BaseModel) -> str:
    """A message of the server."""
    return json.dumps({"type": kind, "data": data.model_dump()})


def error(code: ErrorCode, message: str, **details: int) -> str:
    """The answer to a message that is refused."""
    return json.dumps({"type": "error", "data": {"message": message, "code": code, **details}})


def schemas() -> dict[str, Any]:
    """The answer to ``GET /schema``."""
    return {
        "action": ActionMessage.model_json_schema(),
        "observation": Observation.model_json_schema(),
        "reset_observation": Observation.model_json_schema(),
        "state": EpisodeState.model_json_schema(),
    }


def checked(kind: type[Data], what: str, data: Mapping[str, Any]) -> Data:
    """The data of a message.

    Raises:
        RefusedError: a key is unknown or missing, or a value has the wrong type.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
    place, allowed = ".".join(map(str, wrong["loc"])) or "data", ", ".join(kind.model_fields)
    if wrong["type"] == "extra_forbidden":
        said = f"{what}: unknown key {place[:SHOWN]!r}; allowed: {allowed}"
    else:
        said = f"{what}: {place}: {wrong['msg']} (allowed: {allowed})"
    raise RefusedMessageError("VALIDATION_ERROR", said)
