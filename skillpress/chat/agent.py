"""The chat agent: a text-only model as an ``interface.Agent``, to be evaluated and never trained.

What it is shown, how its answers are read, what it remembers and how it judges itself are the same parts as a
language agent's. It has no tokens: its decisions carry no ids and no log-probabilities. Its core is one state
to the *future* of a decision, so that many states wait for one server at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from skillpress.chat.client import ChatClient, ChatError, PromptTooLongError
from skillpress.interface import (
    AgentState,
    Decision,
    Info,
    ParsedAction,
    Parser,
    Rendering,
    StateUpdate,
    StepReward,
)
from skillpress.trajectory import RewardPart

MARGIN_SECONDS = 30.0
"""Beyond a request's own deadline, for an answer that trickles in."""


class ChatAgent:
    """Acts by asking a server; a context manager, which ends the connections."""

    def __init__(
        self,
        client: ChatClient,
        rendering: Rendering,
        parse: Parser,
        state_update: StateUpdate,
        reward: StepReward,
        at_once: int,
    ) -> None:
        """
        Args:
            at_once: requests under way at most.
        """
        self._client, self._rendering, self._parse = client, rendering, parse
        self._state_update, self._reward = state_update, reward
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="chat")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def ask(self, state: AgentState, seed: int) -> Future[Decision]:
        """The decision in one state, when the server has answered."""
        return self._threads.submit(self._decide, state, seed)

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """See ``interface.Agent``.

        Raises:
            ChatError: the server refused a request, or did not answer in time.
        """
        asked = [self.ask(state, seed) for state, seed in zip(states, seeds, strict=True)]
        return [self._answer(future, state) for future, state in zip(asked, states, strict=True)]

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same judgement as a language agent's."""
        return self._reward(state, parsed, observation, info)

    def update_state(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> AgentState:
        """X_{k+1}."""
        return self._state_update(state, parsed.thought, parsed.action, observation, info)

    def _answer(self, future: Future[Decision], state: AgentState) -> Decision:
        server = self._client.server
        try:
            return future.result(server.deadline_seconds + MARGIN_SECONDS)
        except TimeoutError:
            raise ChatError(
                f"{server.url}: the answer for task {state.task.task_id} trickled in for longer than "
                f"{server.deadline_seconds:g} s"
            ) from None

    def _decide(self, state: AgentState, seed: int) -> Decision:
        try:
            text = self._client.reply(self._rendering.prompt(state), seed, f"task {state.task.task_id}")
        except PromptTooLongError:
            return Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
        return Decision((), (), (), self._parse(text))
