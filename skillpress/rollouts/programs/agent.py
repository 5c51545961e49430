"""The policy behind the endpoint: it renders requests, samples tokens, and reads the calls in them.

Its state's ``info.state`` is a program's request (``Asked``). The prompt of every request is rendered from
the request alone, by the model's chat template. Whether it extends an earlier prompt and its response is
found afterwards, from the tokens, when they are scored.

A request's ``max_tokens`` and ``stop`` are applied to the sampled response: it is cut after the token that
reaches them. Both are stopping times, so the tokens that are left have the log-probabilities they were drawn
with. All requests of a batch are sampled alike, whatever limits they name.

The other requests that an episode has open are sampled in the same batch, before their turn (``ahead.py``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from skillpress.core.chat_messages import ToolCall
from skillpress.core.engine import Completion, Engine, Request, Sampling
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info, StepReward
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Kind, TokenIds, WeightSpan
from skillpress.rollouts.agents.engine_agent import EngineAgent
from skillpress.rollouts.programs.ahead import Ahead
from skillpress.rollouts.programs.requests import Asked, Finish, ModelRequest, Reply, UnshownConversationError
from skillpress.rollouts.programs.tool_calls import Read, Reader

Render = Callable[[ModelRequest], TokenIds]
"""A request as a prompt."""


@dataclass
class ProgramAgent(EngineAgent[tuple[Asked, TokenIds]]):
    """An ``interface.Agent`` that decides the answers to a program."""

    render: Render
    budget: int
    """Maximum number of tokens in a prompt."""
    read: Reader
    decode: Callable[[TokenIds], str]
    """Converts response token ids to text, without special tokens."""
    reward: StepReward
    engine: Engine
    sampling: Sampling
    _asked: dict[int, tuple[Asked, TokenIds]] = field(default_factory=dict, init=False, repr=False)
    _mute: list[tuple[int, Decision]] = field(default_factory=list, init=False, repr=False)
    _ahead: Ahead = field(default_factory=Ahead, init=False, repr=False)

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """See ``interface.Agent``."""
        asked: list[Request] = []
        for request in requests:
            wanted = request.state.info.state
            if self._ahead.has(request.seed):
                if (decision := self._ahead.claim(request.key, request.seed)) is not None:
                    self._mute.append((request.key, decision))
                continue
            prompt, refused = self._prompt(wanted)
            if refused or not isinstance(wanted, Asked):
                kind = wanted.kind if isinstance(wanted, Asked) else "action"
                self._mute.append((request.key, unasked(refused, kind)))
                continue
            asked.append(self._question(request.key, wanted, prompt, request.seed))
            asked += self._questions_ahead(wanted, request.episode_seed)
        self.engine.submit(asked)

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """See ``interface.Agent``."""
        found = []
        for key, decision in super().completed(wait):
            turn = key if key >= 0 else self._ahead.settle(key, decision)
            if turn is not None:
                found.append((turn, decision))
        return found

    def abort(self) -> None:
        """See ``interface.Agent``."""
        self._ahead.clear()
        super().abort()

    def _question(self, key: int, wanted: Asked, prompt: TokenIds, seed: int) -> Request:
        self._asked[key] = wanted, prompt
        return Request(key, prompt, self.sampling, seed)

    def _questions_ahead(self, wanted: Asked, episode_seed: int) -> Iterator[Request]:
        """The episode's other open requests, except those already given to the engine and those not for the
        model.
        """
        for other in wanted.beside():
            seed = derive(episode_seed, other.draw)
            prompt, refused = self._prompt(other)
            if not refused and (key := self._ahead.begin(seed)) is not None:
                yield self._question(key, other, prompt, seed)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """The program keeps its own past: the next state is its next request."""
        return replace(state, observation=observation, info=info)

    def _prompt(self, wanted: object) -> tuple[TokenIds, str]:
        """Return (prompt, reason why the model is not asked); the reason is empty if it is asked."""
        if not isinstance(wanted, Asked):
            return (), "nothing_asked: the program has ended"
        try:
            prompt = self.render(wanted.request)
        except UnshownConversationError as error:
            return (), f"not_shown: {error}"
        if not prompt or len(prompt) > self.budget:
            return (), f"prompt_too_long: {too_long(len(prompt), self.budget)}"
        return prompt, ""

    def _decision(self, asked: tuple[Asked, TokenIds], completion: Completion) -> Decision:
        wanted, prompt = asked
        kept, finish = self._cut(wanted.request, completion)
        ids = completion.token_ids[:kept]
        said = self.read(wanted.request.cut(self.decode(ids)))
        reply = Reply(
            content=said.content,
            calls=with_ids(said.calls, wanted),
            thought=said.thought,
            finish="tool_calls" if said.calls else finish,
            prompt_tokens=len(prompt),
            response_tokens=len(ids),
            weights=_spans(completion.weight_spans, kept),
        )
        return Decision(
            prompt_ids=prompt,
            response_ids=ids,
            logprobs=completion.logprobs[:kept],
            parsed=ParsedAction(said.thought, reply, _invalid(said, finish)),
            weight_spans=reply.weights,
            prefilled_tokens=completion.prefilled_tokens,
            kind=wanted.kind,
        )

    def _cut(self, request: ModelRequest, completion: Completion) -> tuple[int, Finish]:
        """Return (number of tokens that are kept, reason why the response ends there)."""
        ids = completion.token_ids

        def stopped(kept: int) -> bool:
            text = self.decode(ids[:kept])
            return any(stop in text for stop in request.stop)

        if request.stop and stopped(len(ids)):
            kept = bisect_left(range(1, len(ids) + 1), True, key=stopped) + 1
            return self._within(request, kept, "stop")
        return self._within(request, len(ids), completion.finish_reason)

    def _within(self, request: ModelRequest, kept: int, finish: Finish) -> tuple[int, Finish]:
        if request.max_tokens is not None and kept > request.max_tokens:
            return request.max_tokens, "length"
        return kept, finish


def too_long(tokens: int, most: int) -> str:
    """A refusal in the words that make the vendors' clients compact their history."""
    return (
        f"prompt is too long: {tokens} tokens > {most} maximum (this model's maximum context length is {most}"
        " tokens)"
    )


def with_ids(calls: Sequence[ToolCall], asked: Asked) -> tuple[ToolCall, ...]:
    """The calls, with ids that are the same in every repetition of the episode."""
    start = f"call_{asked.request.digest[:12]}{asked.occurrence}"
    return tuple(replace(call, identity=f"{start}_{place}") for place, call in enumerate(calls))


def _spans(spans: Sequence[WeightSpan], kept: int) -> tuple[WeightSpan, ...]:
    return tuple(replace(span, end=min(span.end, kept)) for span in spans if span.start < kept)


def _invalid(said: Read, finish: str) -> str | None:
    return said.invalid or ("cut_off" if finish == "length" else None)


def unasked(refused: str, kind: Kind = "action") -> Decision:
    """The decision to refuse a request; ``refused`` is ``Reply.refused``."""
    parsed = ParsedAction("", Reply("", refused=refused), refused.partition(":")[0])
    return Decision(prompt_ids=(), response_ids=(), logprobs=NO_LOGPROBS, parsed=parsed, kind=kind)
