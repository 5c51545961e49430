"""The chat agent: a text-only model as an ``interface.Agent``, for evaluation and never for training.

Its rendering, parser, state update and reward are the same parts as a language agent's. It has no tokens: its
decisions carry no ids and no log-probabilities. Each requested decision is a *future*, so many states can
wait for one server at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import ClassVar

from skillpress.core.interface import (
    AgentState,
    Decision,
    DecisionRequest,
    Info,
    Rendering,
    StateUpdate,
    StepReward,
    SummarizingUpdate,
)
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction, Parser
from skillpress.core.trajectory import Kind, RewardPart
from skillpress.play.chat.client import ChatClient
from skillpress.play.chat.outcomes import Answer

PARTING_SECONDS = 3.0
"""Time that open requests get to finish at the end: they are paid for, and the client notes their cost."""


class ChatAgent:
    """Acts by asking a server."""

    lockstep: ClassVar[bool] = False
    """False: each answer arrives on its own."""

    def __init__(
        self,
        client: ChatClient,
        rendering: Rendering,
        parse: Parser,
        state_update: StateUpdate,
        reward: StepReward,
        at_once: int,
    ) -> None:
        """``at_once`` is the maximum number of open requests."""
        self._client, self._rendering, self._parse = client, rendering, parse
        self._state_update, self._reward = state_update, reward
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="chat")
        self._asked: dict[int, Future[Decision]] = {}
        self._requests: set[Future[None]] = set()
        """Open requests, including those whose answer is no longer wanted."""

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
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
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same reward as a language agent's."""
        return self._reward(state, parsed, observation, info)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """Return X_{k+1}."""
        update, parsed = self._state_update, decision.parsed
        if decision.kind == "summary" and isinstance(update, SummarizingUpdate):
            return update.summed_up(state, parsed)
        return update(state, parsed.thought, parsed.action, observation, info)

    def _answer(self, answer: Future[Decision], request: DecisionRequest) -> None:
        """Ask the server, in a thread. The client enforces the deadline; the future gets exceptions."""
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(self._decide(request.state, request.seed))
        except Exception as error:  # noqa: BLE001  raised again by ``completed``
            answer.set_exception(error)

    def _decide(self, state: AgentState, seed: int) -> Decision:
        update, prompt = self._state_update, self._rendering.prompt(state)
        what = f"task {state.task.task_id}"
        if isinstance(update, SummarizingUpdate) and state.history and update.due(state):
            answer = self._client.ask(f"{prompt}\n{update.request}", seed, what)
            return _decision(_marked(update.read(answer.text), answer), kind="summary")
        answer = self._client.ask(prompt, seed, what)
        return _decision(_marked(_parsed(answer, self._parse), answer))


def _parsed(answer: Answer, parse: Parser) -> ParsedAction:
    """Parse an answer. A thought that the server sent separately counts as if it preceded the text."""
    parsed = parse(answer.text)
    if answer.thought and parsed.invalid == "missing_thought":
        parsed = parse(f"<think>{answer.thought}</think>{answer.text}")
    return replace(parsed, thought=parsed.thought or answer.thought)


def _marked(parsed: ParsedAction, answer: Answer) -> ParsedAction:
    """The parsed answer; ``invalid`` is the server's reason, not the parser's, if it was cut short."""
    return parsed if answer.ended == "whole" else replace(parsed, invalid=answer.ended)


def _decision(parsed: ParsedAction, kind: Kind = "action") -> Decision:
    return Decision(prompt_ids=(), response_ids=(), logprobs=NO_LOGPROBS, parsed=parsed, kind=kind)
