"""An agent whose answers come from a server: each requested decision is a *future*.

Many states can wait for one server at the same time. The agent has no tokens: its decisions carry no ids and
no log-probabilities, so it is evaluated and never trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any, ClassVar

from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info, StepReward
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Kind, RewardPart
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.outcomes import TokenUsage

PARTING_SECONDS = 3.0
"""Time that open requests get to finish at the end: they are paid for, so the client records their cost."""


class ServerAgent(ABC):
    """Most of an ``interface.Agent``; a subclass asks for one decision and updates the state."""

    lockstep: ClassVar[bool] = False
    """False: each answer arrives on its own."""

    def __init__(self, client: ChatClient, reward: StepReward, at_once: int) -> None:
        """``at_once`` is the maximum number of open requests."""
        self._client, self._reward = client, reward
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="chat")
        self._asked: dict[int, Future[Decision]] = {}
        self._requests: set[Future[None]] = set()
        """Open requests, including those whose answer is no longer wanted."""

    @abstractmethod
    def _decide(self, state: AgentState, seed: int) -> Decision:
        """Ask the server; called in a thread."""

    @abstractmethod
    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """See ``interface.Agent``."""

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """See ``interface.Agent``."""
        for request in requests:
            answer: Future[Decision] = Future()
            self._asked[request.key] = answer
            sent = self._threads.submit(self._answer, answer, request)
            self._requests.add(sent)
            sent.add_done_callback(self._requests.discard)

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """See ``interface.Agent``. ``ChatError`` for a refused request, or one without an answer in time."""
        wait_for(list(self._asked.values()), wait, FIRST_COMPLETED)
        done = [key for key, answer in self._asked.items() if answer.done()]
        return [(key, self._asked.pop(key).result()) for key in done]

    def abort(self) -> None:
        """Forget all open requests. Those already sent are paid for, and their answers are dropped."""
        for answer in self._asked.values():
            answer.cancel()
        self._asked.clear()

    def close(self) -> None:
        """Close the connections."""
        self.abort()
        self._threads.shutdown(wait=False, cancel_futures=True)
        wait_for(set(self._requests), PARTING_SECONDS)
        self._client.close()

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same reward as a language agent's."""
        return self._reward(state, parsed, observation, info)

    def _answer(self, answer: Future[Decision], request: DecisionRequest) -> None:
        """Ask the server, in a thread. The client enforces the deadline; the future gets exceptions."""
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(self._decide(request.state, request.seed))
        except Exception as error:  # noqa: BLE001  raised again by ``completed``
            answer.set_exception(error)


def tokenless(parsed: ParsedAction[Any], kind: Kind = "action", usage: TokenUsage | None = None) -> Decision:
    """A decision without tokens; the server may have counted their number."""
    counts = None if usage is None else (usage.prompt_tokens, usage.response_tokens)
    counted = None if counts is None or None in counts else (counts[0] or 0, counts[1] or 0)
    return Decision((), (), logprobs=NO_LOGPROBS, parsed=parsed, counted_tokens=counted, kind=kind)
