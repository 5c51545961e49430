"""Sections, agents and single runs of programs, for tests that say what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skillpress.core.engine import Engine, Sampling
from skillpress.core.trajectory import Task
from skillpress.environments.program.environment import ProgramEnvironment
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.models.policy import Policy
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.programs.agent import ProgramAgent
from skillpress.rollouts.programs.requests import Reply
from skillpress.rollouts.programs.tool_calls import Reader, words
from tests.support.rollouts import asking


def section_of(**changes: Any) -> ProgramParameters:
    """The section of an isolated program that succeeds whenever it ends."""
    given = {
        "name": "program", "max_calls": 2, "tasks": "none", "verify": f"{asking.HERE}:always", "seconds": 30,
        "isolation": "bubblewrap",
    }  # fmt: skip
    return ProgramParameters(**{**given, **changes})


def agent_of(
    policy: Policy, engine: Engine, budget: int = 12, read: Reader = words, longest: int = 4
) -> ProgramAgent:
    """An agent of this policy; a success is worth 1."""
    return ProgramAgent(
        render=policy.encode_request,
        budget=budget,
        read=read,
        decode=policy.decode,
        reward=OutcomeReward(1.0, 0.0, "any", "step", {}),
        engine=engine,
        sampling=Sampling(max_new_tokens=longest),
    )


@contextmanager
def one_of(params: ProgramParameters) -> Iterator[ProgramEnvironment]:
    """An environment alone."""
    shared = SharedPrograms(params, 1)
    try:
        yield shared()
    finally:
        shared.close()


def printed(params: ProgramParameters, **spec: Any) -> dict[str, Any]:
    """What the program of a task printed, as JSON; it is answered nothing."""
    with one_of(params) as environment:
        environment.reset(Task("t", "program", 0, {"id": "t", **spec}))
        observation, *_ = environment.step(Reply(""))
    found: dict[str, Any] = json.loads(observation)
    return found
