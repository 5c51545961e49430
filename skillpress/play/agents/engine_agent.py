"""Shared by agents whose decisions come from an engine: open questions, and decisions without a question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from skillpress.core.engine import Completion, Engine
from skillpress.core.interface import AgentState, Decision, Info, StepReward
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart

Question = TypeVar("Question")


class EngineAgent(ABC, Generic[Question]):
    """Half of an ``interface.Agent``; a subclass submits questions and reads completions."""

    engine: Engine
    """The agent's own engine. It answers this agent's requests and no others."""
    reward: StepReward
    _asked: dict[int, Question]
    """The questions that the engine has not answered yet, by key."""
    _mute: list[tuple[int, Decision]]
    """Decisions for which the engine is not asked, such as in states whose prompt does not fit."""

    @abstractmethod
    def _decision(self, asked: Question, completion: Completion) -> Decision:
        """The decision that an answer gives."""

    @property
    def lockstep(self) -> bool:
        """Same as the engine's promise."""
        return self.engine.promises.lockstep

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """See ``interface.Agent``."""
        found, self._mute = self._mute, []
        if self._asked:
            answers = self.engine.completed(0.0 if found else wait)
            found += [(key, self._decision(self._asked.pop(key), answer)) for key, answer in answers]
        return found

    def abort(self) -> None:
        """Forget all open requests, here and in the engine."""
        self._asked.clear()
        self._mute.clear()
        self.engine.abort()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The agent's reward for its step, computed from its response and the environment's answer."""
        return self.reward(state, parsed, observation, info)
