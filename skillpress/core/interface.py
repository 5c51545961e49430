"""The contracts between an environment, an agent and a language model.

They follow the formal language-agent interface and the step-level MDP. An *environment* simulates physics
and judges nothing: ``Environment.step`` returns no reward. An *agent* keeps a state X_k, from which the next
prompt is made. It samples tokens v_k from the policy given that state, reads a thought th_k from them and
parses an action A_k = Parser(th_k). It rewards its own steps. Each step is a decision of its own, conditioned
on its own state, so the agent may cut or rewrite the context between steps.

    X_k --policy--> v_k --decode--> th_k --parse--> A_k --environment--> O_{k+1} --f_agent--> X_{k+1}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import gymnasium

from skillpress.core.logprobs import EqualByValue, Logprobs
from skillpress.core.parsed_action import ActContra, ParsedAction
from skillpress.core.trajectory import Kind, RewardPart, Task, TokenIds, WeightSpan

Ask = Callable[[Sequence[str]], Sequence[str]]
"""Sends prompts to a model, such as a judge; returns its responses in the same order."""


@dataclass(frozen=True)
class Info:
    """Facts about the environment after ``reset`` or ``step``; never a judgement."""

    won: bool = False
    """The goal is reached (terminal)."""
    lost: str | None = None
    """Why the episode can no longer be won, such as ``stuck``; None if it can."""
    action: str | None = None
    """The last action in the environment's canonical wording; None after reset, or if it was unreadable."""
    invalid: str | None = None
    """Why the last action changed nothing; None if it was carried out."""
    admissible: Sequence[str] = ()
    """Every action that the environment would carry out now, in a fixed order and the canonical wording.
    An environment may compute it on first access."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """Facts in numbers about the last step, by name: ``exact_match``, ``executed``. A measure of how the
    episode ended is given in the last step only."""
    state: object = None
    """The environment's own state, for renderings in its folder; None if it has none to show."""
    answer: str | None = None
    """What the last action submitted as the answer to the task's question; None if it submitted nothing."""
    state_key: str | None = None
    """The same for equal states of a task, however they were reached, and different for different states.
    Methods that compare actions of one state use it. None if the last observation identifies the state."""
    draw: str | None = None
    """What the next decision's seed derives from, in addition to the episode's seed. None for the number of
    the decision; an environment in which several decisions are open at once names each, so that their order
    does not matter."""


class Environment(Protocol[ActContra]):
    """An environment. Deterministic given its task, and recreated from ``(task, actions so far)``.

    Its actions are texts, unless it says otherwise: ``Environment[Reply]``.
    """

    action_space: gymnasium.Space[Any]
    observation_space: gymnasium.Space[str]

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the task's episode; returns the first observation O_0 and its facts."""

    def step(self, action: ActContra) -> tuple[str, bool, bool, Info]:
        """Act; returns ``(observation, terminated, truncated, info)`` and no reward.

        ``terminated`` means won or lost, ``truncated`` that the step budget T is used up. Any text is
        an action: one that the environment cannot read costs a step and is reported in ``info.invalid``.
        """


@runtime_checkable
class HasNotepad(Protocol):
    """An environment's state (``Info.state``) with a notepad that the agent fills by its actions."""

    @property
    def notepad(self) -> Mapping[str, str]:
        """Section to its text, in display order: ``plan``, ``facts``, ``drafts``. A section without text is
        empty."""


@dataclass(frozen=True)
class Turn:
    """One past step as an agent remembers it."""

    observation: str
    """What the agent saw before it acted."""
    thought: str
    action: str


@dataclass(frozen=True)
class AgentState:
    """X_k: everything that the next prompt may be made from."""

    task: Task
    observation: str
    info: Info
    history: tuple[Turn, ...] = ()
    """The turns that f_agent chose to keep, oldest first."""
    notes: str = ""
    """What f_agent wrote in place of the turns it dropped. Text renderings show it. Empty if the agent keeps
    turns only."""
    kept: object = None
    """What f_agent keeps of the episode outside its prompts, such as a store, for itself alone. None if it
    keeps nothing more."""
    context: TokenIds | None = None
    """The tokens of the last step's prompt and response, which the next prompt extends. None if the next
    prompt is rebuilt from the state."""
    tokens_left: int | None = None
    """How many tokens of the prompt budget the last prompt and its response left over. None if no prompt was
    sent, after a summary, and for an agent without tokens. A rendering may show it."""
    knowledge: str = ""
    """What the agent was given for this episode, such as lessons from another one. The prompt shows it above
    the rendering's text. Empty if it was given nothing."""
    attempt: str = ""
    """The account of an earlier attempt at the task, which the agent reflects on before it acts
    (``Reflection``). Empty if there was no attempt, or after the reflection."""
    plain_context: TokenIds | None = None
    """What ``context`` would be without the knowledge; None if there is no knowledge or no context."""


class StateUpdate(Protocol):
    """f_agent: X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1})."""

    @property
    def grows(self) -> bool:
        """Whether the next prompt extends the last one and its response (``AgentState.context``).

        The agent that holds the tokens fills ``context``; f_agent's turns and notes serve rebuilt prompts."""

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState: ...


@runtime_checkable
class SummarizingUpdate(StateUpdate, Protocol):
    """An f_agent for which the policy summarises the past: these decisions are for the agent itself.

    The agent asks for a summary first if there are turns and either a summary is due or the turns nearly fill
    the prompt for an action.
    """

    @property
    def request(self) -> str:
        """The text at the end of a prompt that asks for a summary."""

    def due(self, state: AgentState) -> bool:
        """Whether the turns are to be summarised now, however much room the prompt has left."""

    def read(self, response: str) -> ParsedAction:
        """The summary as a thought, or the reason why the response is not a summary."""

    def summed_up(self, state: AgentState, summary: ParsedAction) -> AgentState:
        """The state to act in. It has no turns, so the agent is not asked again before it has acted."""


class Reflection(Protocol):
    """How an agent turns an earlier attempt into knowledge: a decision that is for the agent itself."""

    @property
    def request(self) -> str:
        """The text at the end of a prompt that asks for a reflection, after the attempt."""

    def read(self, response: str) -> ParsedAction:
        """The reflection as a thought, or the reason why the response is not a reflection."""

    def knowledge(self, reflection: ParsedAction) -> str:
        """What the agent is given for the episode; empty if the reflection gave nothing."""


class Rendering(Protocol):
    """How one environment is put into words; each environment's ``prompts.py`` names its renderings."""

    @property
    def parser(self) -> str:
        """Which parser of ``agents/parsing.py`` reads the responses, unless ``policy.parser`` names one."""

    @property
    def history(self) -> int | None:
        """How many past turns the prompt shows at most; None leaves it to the state update."""

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt for this state."""

    def continuation(self, state: AgentState) -> str:
        """The text by which a prompt extends the last response: the environment's answers since then.

        Everything else is earlier in the same prompt. Only a state update that grows asks for it.
        """

    def response(self, action: str, info: Info) -> str:
        """A demonstrator's response that gives this action; ``info`` is the environment's answer to it."""


@runtime_checkable
class RememberingRendering(Rendering, Protocol):
    """A rendering in whose responses the agent writes what it wants to remember."""

    def remembered(self, state: AgentState, action: str, info: Info) -> tuple[str, str]:
        """(thought, response) of a demonstrator of this action; f_agent reads its memory from the thought."""


@dataclass(frozen=True)
class ScratchVocabulary:
    """The words of the compact rendering, for a tokenizer and a model made from scratch.

    The agent chooses the vocabulary 𝒱: a whole action may be one word, or several words and a closing one.
    """

    words: tuple[str, ...]
    """Every word that a prompt or a response may contain."""
    stop_words: tuple[str, ...]
    """A response ends with the first of these."""
    numbers: Mapping[str, int]
    """Words that mean integers; their embeddings start as sines and cosines of the number."""
    state_words: int
    """Words in the longest prompt."""
    end: str | None = None
    """The stop word that closes a response and does not belong to its text. None if the stop words are
    themselves actions."""
    continuation_words: int | None = None
    """Words in the longest continuation of a prompt; None if the rendering has no continuations."""


def why_invalid(parsed: ParsedAction[Any], info: Info) -> str | None:
    """The reason that a step's record gives: the parser's, else the environment's; None for a valid step.

    If a parser let an action through in spite of its format and the environment refused it, the record has
    both reasons, joined by ``+``: ``missing_thought+not_admissible``. So it says whether a response was
    malformed and also whether its action was carried out.
    """
    if parsed.invalid and info.invalid and parsed.action:
        return f"{parsed.invalid}+{info.invalid}"
    return parsed.invalid or info.invalid


@dataclass(frozen=True, eq=False)
class Decision(EqualByValue):
    """One response of an agent and what was read from it."""

    prompt_ids: TokenIds
    """s_t, the tokens that the policy was conditioned on; empty for an agent without tokens."""
    response_ids: TokenIds
    logprobs: Logprobs
    """[response tokens] log-probability (nats) of each under the sampling distribution."""
    parsed: ParsedAction[Any]
    weight_spans: tuple[WeightSpan, ...] = ()
    """Which weights sampled which tokens; empty if no tokens were sampled or the engine does not say."""
    prefilled_tokens: int | None = field(default=None, compare=False)
    """See :attr:`Completion.prefilled_tokens`."""
    counted_tokens: tuple[int, int] | None = field(default=None, compare=False)
    """Tokens of the prompt and of the response by a server's count; None for tokens of ours, or without a
    count."""
    kind: Kind = "action"
    """What the response was asked for. The environment does not see a summary or a reflection: the agent
    judges it as a step without an answer, updates its state, and is asked again."""
    plain_prompt_ids: TokenIds | None = None
    """What the prompt would have been without ``AgentState.knowledge``. None if there was no knowledge, or if
    that prompt would not fit."""


class StepReward(Protocol):
    """R_{k+1} = r(X_k, th_k, A_k, O_{k+1}) and the facts: an agent's judgement of its own step.

    A part has the same name and the same credit at every step; a part that is left out is 0.
    """

    def __call__(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]: ...


@dataclass(frozen=True)
class DecisionRequest:
    """One state to act in."""

    key: int
    """The caller's number, unique among the unanswered requests."""
    state: AgentState
    seed: int
    """The seed from which every random choice of the decision derives."""
    episode_seed: int = 0
    """What ``seed`` derives from, with ``Info.draw`` or the decision's number. An agent needs it only to
    decide requests of the episode before their turn."""


class Agent(Protocol):
    """Decides, judges its own steps, and manages its own memory."""

    @property
    def lockstep(self) -> bool:
        """Whether ``completed`` decides in this process, for all requests in one batch. Callers should then
        submit all requests before they call it."""

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Ask for decisions: v_k ~ p(. | X_k), th_k = Decode(v_k), A_k = Parser(th_k). Does not wait.

        A decision depends only on its own state and seed.
        """

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """(key, decision) of the newly made decisions; waits at most ``wait`` seconds for the first.

        Raises:
            Exception: a decision failed. An agent that can try again has done that before it raises.
        """

    def abort(self) -> None:
        """Drop all undecided requests; they are never returned."""

    def close(self) -> None:
        """Release all that the agent holds, its share of the engine too; it cannot decide after this."""

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """R_{k+1} = r(X_k, th_k, A_k, O_{k+1}) in named parts, each with what it counts for."""

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}); ``decision`` was made in X_k.

        After a summary the environment is unchanged: observation and facts are those of ``state``.
        """
