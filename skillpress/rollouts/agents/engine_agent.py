"""Shared by agents whose decisions come from an engine: open questions, and decisions without a question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from skillpress.core.engine import Completion, Engine, Sampling
from skillpress.core.errors import UserError
from skillpress.core.interface import AgentState, Decision, Info, StepReward
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart

Question = TypeVar("Question")


class EngineAnswerError(UserError):
    """An engine gives an answer that is useless for training and evaluation."""


class EngineAgent(ABC, Generic[Question]):
    """Half of an ``interface.Agent``; a subclass submits questions and reads completions."""

    engine: Engine
    """The agent's own engine. It answers this agent's requests and no others."""
    reward: StepReward
    sampling: Sampling
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
            # With decisions at hand, look for more but do not wait.
            answers = self.engine.completed(0.0 if found else wait)
            for key, answer in answers:
                self._refuse_too_long(answer)
                self._refuse_infinite(answer)
                found.append((key, self._decision(self._asked.pop(key), answer)))
        return found

    def _refuse_too_long(self, answer: Completion) -> None:
        """Raise ``EngineAnswerError`` if a response has more tokens than were asked for."""
        most, length, kind = self.sampling.max_new_tokens, len(answer.token_ids), type(self.engine)
        if length > most:
            raise EngineAnswerError(
                f"the engine {kind.__module__}:{kind.__qualname__} gives a response of {length} tokens, more "
                f"than sampling.max_new_tokens ({most}); it must end a response there"
            )

    def _refuse_infinite(self, answer: Completion) -> None:
        """Raise ``EngineAnswerError`` if a sampled token has no finite log-probability."""
        wrong = np.flatnonzero(~np.isfinite(answer.logprobs))
        if not len(wrong):
            return
        kind = type(self.engine)
        raise EngineAnswerError(
            f"the engine {kind.__module__}:{kind.__qualname__} gives token {wrong[0] + 1} of a response of "
            f"{len(answer.token_ids)} the log-probability {answer.logprobs[wrong[0]]}: the policy's weights "
            "or logits are not finite, as after a training that has diverged; use an earlier checkpoint, or "
            "lower training.learning_rate (with policy.dtype bfloat16, float32 may help)"
        )

    def abort(self) -> None:
        """Forget all open requests, here and in the engine."""
        self._asked.clear()
        self._mute.clear()
        self.engine.abort()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The agent's reward for its step, computed from its response and the environment's answer."""
        return self.reward(state, parsed, observation, info)
