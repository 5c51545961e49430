"""The contracts between an environment, an agent and a language model.

They follow the formal language-agent interface and the step-level MDP. An *environment* simulates physics
and judges nothing: ``Environment.step`` returns no reward. An *agent* keeps a state X_k (what the
next prompt holds), samples tokens v_k from the policy given that state, reads a thought th_k from
them and parses an action A_k = Parser(th_k); it rewards its own steps. Each step is a decision of
its own, conditioned on its own state, so the context may be cut or rewritten between steps.

    X_k --policy--> v_k --decode--> th_k --parse--> A_k --environment--> O_{k+1} --f_agent--> X_{k+1}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import gymnasium

from skillpress.core.logprobs import EqualByValue, Logprobs
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Kind, RewardPart, Task, TokenIds, WeightSpan

Ask = Callable[[Sequence[str]], Sequence[str]]
"""Puts prompts to a model that is asked, such as a judge; returns its responses in the same order."""


@dataclass(frozen=True)
class Info:
    """Facts about the environment after ``reset`` or ``step``; never a judgement."""

    won: bool = False
    """The goal is reached (terminal)."""
    lost: str | None = None
    """Why the episode is lost for good, such as ``stuck``; None while it is not."""
    action: str | None = None
    """The last action in the environment's canonical wording; None after reset, or when unreadable."""
    invalid: str | None = None
    """Why the last action changed nothing; None when it was carried out."""
    admissible: Sequence[str] = ()
    """Every action that would be carried out now, in a fixed order and the canonical wording.
    An environment may work it out when it is first looked at."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """Facts in numbers about the step just taken, by name: ``exact_match``, ``executed``. One that says how
    the episode ended stands in its last step alone."""
    state: object = None
    """The environment's own state for renderings in its folder; None where it has none to show."""
    state_key: str | None = None
    """Equal in equal states of a task, however they were reached, and in no others, for methods that compare
    actions taken in one state. None where the last observation stands for the state."""


class Environment(Protocol):
    """An environment. Deterministic given its task, and recreated from ``(task, actions so far)``."""

    action_space: gymnasium.Space[str]
    observation_space: gymnasium.Space[str]

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the task's episode; returns the first observation O_0 and its facts."""
        ...

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Act; returns ``(observation, terminated, truncated, info)`` and no reward.

        ``terminated`` means won or lost, ``truncated`` that the step budget T ran out. Any text is
        an action: what the environment cannot read costs a step and is reported in ``info.invalid``.
        """
        ...


@runtime_checkable
class HasNotepad(Protocol):
    """An environment's state (``Info.state``) with a notepad in it that the agent fills by its actions."""

    @property
    def notepad(self) -> Mapping[str, str]:
        """Section to its text, in the order to be shown: ``plan``, ``facts``, ``drafts``. A section without
        text is empty."""
        ...


@dataclass(frozen=True)
class Turn:
    """One past step as an agent remembers it."""

    observation: str
    """What the agent saw before it acted."""
    thought: str
    action: str


@dataclass(frozen=True)
class AgentState:
    """X_k: all that the next prompt may be made from."""

    task: Task
    observation: str
    info: Info
    history: tuple[Turn, ...] = ()
    """The turns that f_agent chose to keep, oldest first."""
    notes: str = ""
    """What f_agent wrote in place of turns it dropped, which text renderings show; empty when it keeps
    turns only."""
    context: TokenIds | None = None
    """The last step's prompt and response, token by token, which the next prompt goes on from; None where
    it is made anew."""
    tokens_left: int | None = None
    """What the last prompt and its response left of the tokens that a prompt may have; None where none was
    sent, after a summary, and for an agent without tokens. A rendering may tell it."""
    knowledge: str = ""
    """What the agent was given to play this episode with (what it learned from another one), which stands
    above all that the rendering says; empty where it was given nothing."""
    attempt: str = ""
    """The account of an earlier attempt at the task, which the agent is asked to reflect on before it acts
    (``Reflection``); empty where there is none, and when it has."""
    plain_context: TokenIds | None = None
    """What ``context`` would be without the knowledge; None where there is no knowledge or no context."""


class StateUpdate(Protocol):
    """f_agent: X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1})."""

    @property
    def grows(self) -> bool:
        """Whether the next prompt goes on from the last one and its response (``AgentState.context``).

        Whoever holds the tokens puts them there; what else is kept is for prompts that are made anew."""
        ...

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState: ...


@runtime_checkable
class SummarizingUpdate(StateUpdate, Protocol):
    """An f_agent for which the policy sums up the past: decisions that are for the agent itself.

    Where there are turns and a summary is due, or the prompt for an action is nearly full with them, the
    agent is asked for a summary first.
    """

    @property
    def request(self) -> str:
        """What stands below a prompt that asks for a summary."""
        ...

    def due(self, state: AgentState) -> bool:
        """Whether the turns are to be summed up, whatever room there is."""
        ...

    def read(self, response: str) -> ParsedAction:
        """The summary as a thought, or why it is none."""
        ...

    def summed_up(self, state: AgentState, summary: ParsedAction) -> AgentState:
        """The state to act in; it has no turns, so that the agent is not asked again before it has acted."""
        ...


class Reflection(Protocol):
    """How an agent makes knowledge of an earlier attempt: a decision that is for the agent itself."""

    @property
    def request(self) -> str:
        """What stands below a prompt that asks for a reflection; the attempt stands above it."""
        ...

    def read(self, response: str) -> ParsedAction:
        """The reflection as a thought, or why it is none."""
        ...

    def knowledge(self, reflection: ParsedAction) -> str:
        """What the agent plays the episode with; empty where nothing came of it."""
        ...


class Rendering(Protocol):
    """How one environment is put into words; each environment's ``prompts.py`` names its own."""

    @property
    def parser(self) -> str:
        """Which parser of ``agents/parsing.py`` reads the responses, unless ``policy.parser`` says."""
        ...

    @property
    def history(self) -> int | None:
        """How many past turns the prompt shows at most; None leaves it to the state update."""
        ...

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt for this state."""
        ...

    def continuation(self, state: AgentState) -> str:
        """What a prompt says that goes on from the last response: what the environment has answered since.

        All else stands earlier in the same prompt. A state update that grows asks for it, no other does.
        """
        ...

    def response(self, action: str, info: Info) -> str:
        """What a demonstrator of this action answers; ``info`` is what the environment said after it."""
        ...


@runtime_checkable
class RememberingRendering(Rendering, Protocol):
    """A rendering in whose answers the agent writes what it keeps."""

    def remembered(self, state: AgentState, action: str, info: Info) -> tuple[str, str]:
        """(thought, response) of a demonstrator of this action; f_agent reads what is kept in the thought."""
        ...


@dataclass(frozen=True)
class ScratchVocabulary:
    """The words of the compact rendering, for a tokenizer and a model made from scratch.

    The vocabulary 𝒱 is a choice of the agent's: a whole action may be one word, or several words
    closed by one that says so.
    """

    words: tuple[str, ...]
    """Every word a prompt or a response may hold."""
    stop_words: tuple[str, ...]
    """A response ends with the first of these."""
    numbers: Mapping[str, int]
    """Words that stand for integers; their embeddings start as sines and cosines of the number."""
    state_words: int
    """Words in the longest prompt."""
    end: str | None = None
    """The stop word that closes a response and is no part of its text; None where the stop words are
    themselves actions."""
    continuation_words: int | None = None
    """Words in the longest continuation of a prompt; None where the rendering has none."""


def why_invalid(parsed: ParsedAction, info: Info) -> str | None:
    """What a step's record states: the parser's reason, else the environment's; None for a valid step.

    Where a parser let an action through in spite of its format and the environment refused it, both
    reasons, joined by ``+``: ``missing_thought+not_admissible``. So a record tells whether a response was
    malformed and also whether its action was carried out.
    """
    if parsed.invalid and info.invalid and parsed.action:
        return f"{parsed.invalid}+{info.invalid}"
    return parsed.invalid or info.invalid


@dataclass(frozen=True, eq=False)
class Decision(EqualByValue):
    """One response of an agent and what was read in it."""

    prompt_ids: TokenIds
    """s_t, the tokens that the policy was conditioned on; empty for an agent without tokens."""
    response_ids: TokenIds
    logprobs: Logprobs
    """[response tokens] log-probability (nats) of each under the sampling distribution."""
    parsed: ParsedAction
    weight_spans: tuple[WeightSpan, ...] = ()
    """Which weights sampled which tokens; empty where nothing was sampled or nobody says."""
    prefilled_tokens: int | None = field(default=None, compare=False)
    """See :class:`Completion`."""
    kind: Kind = "action"
    """What the response was asked for. No environment sees a summary or a reflection: the agent judges it as
    a step to which nothing was answered, updates its state, and is asked again."""
    plain_prompt_ids: TokenIds | None = None
    """What the prompt would have been without ``AgentState.knowledge``; None where there was none, and where
    it would not fit."""


class StepReward(Protocol):
    """R_{k+1} = r(X_k, th_k, A_k, O_{k+1}) and the facts: an agent's judgement of its own step.

    Parts have the same names and the same credit at every step; one that is left out is 0.
    """

    def __call__(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]: ...


@dataclass(frozen=True)
class DecisionRequest:
    """One state to act in."""

    key: int
    """The caller's; unique among the requests that are not answered yet."""
    state: AgentState
    seed: int
    """Whatever is random in the decision derives from it."""


class Agent(Protocol):
    """Decides, judges its own steps, and manages its own memory."""

    @property
    def lockstep(self) -> bool:
        """Whether ``completed`` decides in this process, for all requests in one batch: then they should
        all be there before it is called."""
        ...

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Ask for decisions: v_k ~ p(. | X_k), th_k = Decode(v_k), A_k = Parser(th_k). Never blocks long.

        A decision depends on its own state and seed alone.
        """
        ...

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """(key, decision) of what has been decided since; waits at most ``wait`` seconds for the first.

        Raises:
            Exception: a decision cannot be had. An agent that can try again does so before.
        """
        ...

    def abort(self) -> None:
        """Forget what is not decided; nothing of it is ever returned."""
        ...

    def close(self) -> None:
        """Give back what it holds, its engine's share included; it decides no more."""
        ...

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """R_{k+1} = r(X_k, th_k, A_k, O_{k+1}), in named parts that say what each counts for."""
        ...

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}); ``decision`` is what was decided in X_k.

        After a summary nothing has changed in the environment: observation and facts are those of ``state``.
        """
        ...
