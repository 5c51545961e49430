"""Requests that a program has open at once: sampled together, decided at their turn, drawn as if alone."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.chat_messages import Message
from skillpress.core.engine import Completion, Promises, Request, StateDict
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.rollouts.programs import ahead
from skillpress.rollouts.programs.agent import ProgramAgent
from skillpress.rollouts.programs.requests import Asked, ModelRequest
from tests.support.models.tiny import tiny_policy
from tests.support.rollouts.program_parts import agent_of

POLICY, EPISODE = tiny_policy(), 7
TASK = Task("a", "program", 0, {"id": "a"})


def asked(text: str, *beside: Asked) -> Asked:
    return Asked(ModelRequest((Message("user", text),)), 0, lambda: beside)


def request(key: int, wanted: Asked) -> DecisionRequest:
    state = AgentState(TASK, "", Info(state=wanted, draw=wanted.draw))
    return DecisionRequest(key, state, derive(EPISODE, wanted.draw), EPISODE)


class Watched:
    """An engine that notes its requests; ``held`` keeps its answers back."""

    def __init__(self) -> None:
        self._engine, self.promises = LocalEngine(POLICY), Promises(True, True, lockstep=False)
        self.batches: list[int] = []
        self.held = False

    def submit(self, requests: Sequence[Request]) -> None:
        self.batches += [len(requests)] if requests else []
        self._engine.submit(requests)

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        return [] if self.held else self._engine.completed(wait)

    def abort(self) -> None:
        self._engine.abort()

    def update_weights(self, weights: StateDict, version: int) -> None:
        self._engine.update_weights(weights, version)

    def sleep(self) -> None: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


def decided(agent: ProgramAgent, *wanted: DecisionRequest) -> dict[int, Decision]:
    agent.submit(wanted)
    return dict(agent.completed(1.0))


def alone(wanted: Asked) -> Decision:
    return decided(agent_of(POLICY, Watched()), request(0, wanted))[0]


def test_what_an_episode_has_open_is_one_batch_and_each_is_decided_at_its_turn() -> None:
    others = [asked("1 2"), asked("3")]
    engine = Watched()
    agent = agent_of(POLICY, engine)
    first = decided(agent, request(0, asked("5", *others)))
    second = decided(agent, request(1, asked("1 2", others[1])))
    third = decided(agent, request(2, others[1]))
    assert engine.batches == [3]
    found = [first[0].response_ids, second[1].response_ids, third[2].response_ids]
    assert found == [alone(each).response_ids for each in (asked("5"), *others)]


def test_a_turn_that_comes_before_the_engines_answer_waits_for_it() -> None:
    other = asked("1 2")
    engine = Watched()
    agent = agent_of(POLICY, engine)
    engine.held = True
    assert decided(agent, request(0, asked("5", other))) == {}
    assert decided(agent, request(1, other)) == {}
    engine.held = False
    found = dict(agent.completed(1.0))
    assert engine.batches == [2] and found.keys() == {0, 1}
    assert found[1].response_ids == alone(other).response_ids


def test_a_request_that_was_not_asked_ahead_is_asked_at_its_turn() -> None:
    engine = Watched()
    agent = agent_of(POLICY, engine)
    too_long = asked(" ".join("1" * 13))
    decided(agent, request(0, asked("5", too_long)))
    assert engine.batches == [1]
    assert decided(agent, request(1, too_long))[1].parsed.invalid == "prompt_too_long"
    decided(agent, request(2, asked("6")))
    assert engine.batches == [1, 1]


def test_an_abort_forgets_what_was_asked_ahead() -> None:
    other = asked("1 2")
    engine = Watched()
    agent = agent_of(POLICY, engine)
    decided(agent, request(0, asked("5", other)))
    agent.abort()
    decided(agent, request(1, other))
    assert engine.batches == [2, 1]


def test_decisions_that_nobody_takes_are_forgotten_oldest_first(monkeypatch) -> None:
    monkeypatch.setattr(ahead, "MOST", 2)
    others = [asked(str(number)) for number in range(4)]
    engine = Watched()
    agent = agent_of(POLICY, engine)
    decided(agent, request(0, asked("5", *others)))
    decided(agent, request(1, others[0]), request(2, others[3]))
    assert engine.batches == [5, 1], "the first was forgotten, the last was kept"
