"""An environment that counts down, and agents that walk through it and jump now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gymnasium.spaces import Space, Text

from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.logprobs import as_logprobs
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task


class Countdowner:
    """Ends after the number of steps in the task; ``jump`` wins immediately."""

    action_space: Space[str] = Text(max_length=16)
    observation_space: Space[str] = action_space

    def reset(self, task: Task) -> tuple[str, Info]:
        self.left: int = task.spec["length"]
        return str(self.left), Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        assert self.left > 0, "stepped after the end"
        self.left -= 1
        won = action == "jump"
        return str(self.left), won, not won and self.left == 0, Info(won=won, action=action.upper())


@dataclass
class Walker:
    """Walks on; jumps if the seed is divisible by 7. Records the number of requests."""

    lockstep: bool = True
    batches: list[int] = field(default_factory=list)
    asked: list[DecisionRequest] = field(default_factory=list)
    """Open requests."""

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        self.batches.append(len(requests))
        self.asked += requests

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        answered, self.asked = self.asked, []
        return [(request.key, self.decision(request)) for request in answered]

    def abort(self) -> None:
        self.asked.clear()

    def close(self) -> None:
        pass

    def decision(self, request: DecisionRequest) -> Decision:
        seed = request.seed
        return Decision(
            (seed % 100,), (1,), as_logprobs((-0.5,)), ParsedAction("hm", "jump" if seed % 7 == 0 else "walk")
        )

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        return (RewardPart("success", 10.0 * info.won, "trajectory"),)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        return AgentState(state.task, observation, info)


TASKS = [Task(f"t{length}", "walk", 0, {"length": length}) for length in (9, 1, 4, 2, 7, 3)]
