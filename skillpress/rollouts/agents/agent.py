"""The language agent: one policy, one environment's prompts, one memory and one reward for its own steps.

    X_k --prompt, policy--> v_k --decode--> th_k --parse--> A_k --environment--> O_{k+1} --f_agent--> X_{k+1}

The caller passes X_k in and gets X_{k+1} back, so one agent plays any number of episodes. The agent itself
remembers only the requests that its engine has not answered yet.

If the state update asks for summaries (``interface.SummarizingUpdate``), the agent makes some decisions for
itself: a prompt asks for a summary instead of an action, and the environment does not see it. The same holds
for a reflection on an earlier attempt at the task (``interface.Reflection``), which is then placed above all
prompts of the episode. For every prompt with such knowledge, the decision also records the prompt without it,
so that a policy can be trained to do without the knowledge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from skillpress.core.answers import ask
from skillpress.core.engine import Completion, Engine, Request, Sampling
from skillpress.core.interface import (
    Agent,
    AgentState,
    Decision,
    DecisionRequest,
    Info,
    Reflection,
    StateUpdate,
    StepReward,
    SummarizingUpdate,
)
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction, Parser
from skillpress.core.trajectory import Kind, TokenIds
from skillpress.rollouts.agents.context import Prompter
from skillpress.rollouts.agents.engine_agent import EngineAgent

_UNASKED = Decision(
    prompt_ids=(), response_ids=(), logprobs=NO_LOGPROBS, parsed=ParsedAction("", "", "prompt_too_long")
)
"""The decision in a state whose prompt does not fit the budget."""


@dataclass(frozen=True)
class _Asked:
    """One question to the engine: the prompt for one state."""

    prompt: TokenIds | None
    """None if the prompt does not fit."""
    kind: Kind
    """What the prompt asks for."""
    plain: TokenIds | None = None
    """The prompt without the state's knowledge; None if the state has no knowledge."""


@dataclass
class LanguageAgent(EngineAgent[_Asked]):
    """An agent that acts by sampling from a language model."""

    prompter: Prompter
    parse: Parser
    state_update: StateUpdate
    reward: StepReward
    decode: Callable[[TokenIds], str]
    """Converts response token ids to text, without special tokens."""
    engine: Engine
    sampling: Sampling
    reflection: Reflection | None = None
    """How the agent reflects on earlier attempts; None if it is never given one."""
    _asked: dict[int, _Asked] = field(default_factory=dict, init=False, repr=False)
    _mute: list[tuple[int, Decision]] = field(default_factory=list, init=False, repr=False)

    def act(self, state: AgentState, seed: int = 0) -> tuple[str, str]:
        """Return (thought, action). The action is empty if none was parsed or a summary is due; the thought
        is then the summary.
        """
        (decision,) = decide(self, [state], [seed])
        return decision.parsed.thought, decision.parsed.action

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        asked = []
        questions = self._questions([request.state for request in requests])
        for request, question in zip(requests, questions, strict=True):
            if question.prompt is None:
                self._mute.append((request.key, replace(_UNASKED, kind=question.kind)))
                continue
            self._asked[request.key] = question
            asked.append(Request(request.key, question.prompt, self.sampling, request.seed))
        self.engine.submit(asked)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """Return X_{k+1}. After a state without a prompt the next has nothing to extend and is rebuilt."""
        if decision.kind == "reflection":
            return replace(state, attempt="", knowledge=self._own.knowledge(decision.parsed))
        if decision.kind == "summary" and isinstance(self.state_update, SummarizingUpdate):
            return replace(self.state_update.summed_up(state, decision.parsed), tokens_left=None)
        thought, action = decision.parsed.thought, decision.parsed.action
        following = self.state_update(state, thought, action, observation, info)
        tokens, plain = decision.prompt_ids + decision.response_ids, decision.plain_prompt_ids
        grows = self.state_update.grows
        return replace(
            following,
            context=tokens or None if grows else None,
            tokens_left=max(0, self.prompter.budget - len(tokens)) if tokens else None,
            knowledge=state.knowledge,
            plain_context=plain + decision.response_ids if grows and plain is not None else None,
        )

    @property
    def _own(self) -> Reflection:
        if self.reflection is None:
            raise ValueError("got an attempt to reflect on, but the agent was made without a reflection")
        return self.reflection

    def _questions(self, states: Sequence[AgentState]) -> list[_Asked]:
        """For each state: the prompt, what it asks for, and the same prompt without knowledge."""
        kinds = self._kinds(states)
        shown = [replace(state, knowledge=state.attempt) if state.attempt else state for state in states]
        knowing = [row for row, state in enumerate(states) if state.knowledge]
        bare = [replace(states[row], knowledge="", context=states[row].plain_context) for row in knowing]
        plain = dict(zip(knowing, self._prompts(bare, [kinds[row] for row in knowing]), strict=True))
        prompts = self._prompts(shown, kinds)
        return [_Asked(prompts[row], kind, plain.get(row)) for row, kind in enumerate(kinds)]

    def _kinds(self, states: Sequence[AgentState]) -> list[Kind]:
        """A reflection if there is an attempt, a summary if due or nearly full, otherwise an action."""
        kinds: list[Kind] = ["reflection" if state.attempt else "action" for state in states]
        update = self.state_update
        if isinstance(update, SummarizingUpdate):
            for row, full in enumerate(self.prompter.nearly_full(states)):
                state = states[row]
                # A state without turns has nothing to sum up: it would be as full as before and ask for ever.
                if kinds[row] == "action" and state.history and (update.due(state) or full):
                    kinds[row] = "summary"
        return kinds

    def _prompts(self, states: Sequence[AgentState], kinds: Sequence[Kind]) -> list[TokenIds | None]:
        """One prompt per state, asking for the given kind."""
        found: list[TokenIds | None] = [None] * len(states)
        for kind in dict.fromkeys(kinds):
            rows = [row for row, each in enumerate(kinds) if each == kind]
            asking = replace(self.prompter, request=self._request(kind))
            for row, prompt in zip(rows, asking([states[row] for row in rows]), strict=True):
                found[row] = prompt
        return found

    def _request(self, kind: Kind) -> str:
        """The request below a prompt of this kind."""
        if kind == "reflection":
            return self._own.request
        if kind == "summary" and isinstance(self.state_update, SummarizingUpdate):
            return self.state_update.request
        return self.prompter.request

    def _decision(self, asked: _Asked, completion: Completion) -> Decision:
        assert asked.prompt is not None, "what does not fit is not asked"
        response = self.decode(completion.token_ids)
        if asked.kind == "reflection":
            parsed = self._own.read(response)
        elif asked.kind == "summary" and isinstance(self.state_update, SummarizingUpdate):
            parsed = self.state_update.read(response)
        else:
            parsed = self.parse(response)
        if parsed.end is not None:
            completion = completion.beginning(self._tokens_of(completion.token_ids, parsed.end))
        return Decision(
            prompt_ids=asked.prompt,
            response_ids=completion.token_ids,
            logprobs=completion.logprobs,
            parsed=parsed,
            weight_spans=completion.weight_spans,
            prefilled_tokens=completion.prefilled_tokens,
            kind=asked.kind,
            plain_prompt_ids=asked.plain,
        )

    def _tokens_of(self, tokens: TokenIds, characters: int) -> int:
        """The smallest number of tokens whose text has this many characters."""
        return bisect_left(range(len(tokens)), characters, key=lambda count: len(self.decode(tokens[:count])))


SECONDS = 600.0
"""Maximum wait from one decision to the next, unless the caller sets another."""


def decide(
    agent: Agent, states: Sequence[AgentState], seeds: Sequence[int], seconds: float = SECONDS
) -> list[Decision]:
    """Return one decision per state, in order. The agent must have no other open requests.

    Raises:
        UnansweredError: the agent decided nothing for ``seconds``. Open requests are aborted, as they are
        after any other error.
    """
    asked = zip(states, seeds, strict=True)
    return ask(agent, [DecisionRequest(key, state, seed) for key, (state, seed) in enumerate(asked)], seconds)
