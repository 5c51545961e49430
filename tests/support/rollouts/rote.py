"""An engine that answers from a list, and an agent that plays with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.interface import AgentState, Info
from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.batch import BatchEngine
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, Window
from skillpress.rollouts.agents.parsing import tagged


def encode(text: str) -> TokenIds:
    return tuple(text.encode())


def decode(ids: TokenIds) -> str:
    return bytes(ids).decode()


@dataclass
class RoteEngine(BatchEngine):
    """Answers from a list, and remembers what it was asked."""

    answers: list[str]
    write: Callable[[str], TokenIds] = encode
    read: Callable[[TokenIds], str] = decode
    asked: list[tuple[str, Sampling, int]] = field(default_factory=list)
    promises = Promises(exact_seeds=False, exact_logprobs=False, lockstep=True)

    def __post_init__(self) -> None:
        super().__init__()
        self.version = 7

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        self.asked += [(self.read(p), sampling, seed) for p, seed in zip(prompts, seeds, strict=True)]
        ids = [self.write(self.answers.pop(0)) for _ in prompts]
        return [Completion(i, as_logprobs((0.0,) * len(i)), "stop") for i in ids]

    def update_weights(self, weights: StateDict, version: int) -> None:
        raise AssertionError("no training runs here")


@dataclass(frozen=True)
class Telling:
    """Shows notes, turns and the current observation."""

    parser: str = "tagged"
    history: int | None = 3

    def prompt(self, state: AgentState) -> str:
        turns = [f"{turn.observation}>{turn.action}" for turn in state.history]
        return " ".join([f"[{state.notes}]", *turns, state.observation])

    def continuation(self, state: AgentState) -> str:
        return f" now {state.observation}"

    def response(self, action: str, info: Info) -> str:
        return action


@dataclass(frozen=True)
class Recounting:
    """Shows the history's actions and the observation."""

    parser: str = "tagged"
    history: int | None = 1

    def prompt(self, state: AgentState) -> str:
        return " ".join([*(turn.action for turn in state.history), state.observation])

    def continuation(self, state: AgentState) -> str:
        return state.observation

    def response(self, action: str, info: Info) -> str:
        return action


def agent(*answers: str) -> tuple[LanguageAgent, RoteEngine]:
    engine = RoteEngine(list(answers))
    reward = OutcomeReward(success=10.0, invalid_penalty=0.01)
    sampling = Sampling(temperature=0.4)
    prompter = Prompter(Recounting(), lambda texts: [*map(encode, texts)], budget=1000)
    return LanguageAgent(prompter, tagged, Window(1), reward, decode, engine, sampling), engine
