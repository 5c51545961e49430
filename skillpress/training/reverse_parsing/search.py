"""Samples thoughts, keeps those that lead to known actions, and ranks them.

Two things can be chosen. The first is whether a *hint* below the prompt gives the action A*. A policy that
seldom finds A* needs the hint; without it, the file has the policy's own successes (rejection sampling, as in
RFT). The second is who *answers*:

    sampled    the policy writes the whole response, which is kept where Parser(th) = A*
    completed  the policy writes only the thought; a sentence that was cut off is removed, and the
               demonstrator's answer follows. This is for models too weak to keep a format; only the rank then
               distinguishes their thoughts

Equal responses count once. All are ranked by log p(response | X), in the prompt *without* the hint, because
they are learned there: a thought that only makes sense to a reader who knows A* comes last. In ``completed``
the answer's log-probability is included, so a thought after which A* is likely comes first.

Left out: a length normalisation (the file has the number of tokens, so a reader can add one), and thoughts in
the history: the states are those of the demonstration, and its earlier turns have no thoughts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from skillpress.core.engine import Completion, Engine, Sampling
from skillpress.core.parsed_action import Parser
from skillpress.core.seeds import derive
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import generate
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import PASS_TOKENS, response_logprobs
from skillpress.models.policy.scorers import choose_scorer
from skillpress.rollouts.agents import Prompter
from skillpress.training.imitation.thoughts import Thought
from skillpress.training.reverse_parsing.targets import Target

Answer = Literal["sampled", "completed"]

HINT = """\
The right action here is: {action}
Reason towards it from what you see above, as if nobody had told you, and answer in the form asked for.
"""
"""The hint below the prompt."""


@dataclass(frozen=True)
class FoundThoughts:
    """The result for one target."""

    thoughts: tuple[Thought, ...]
    """The thoughts, the likeliest first."""
    sampled: int
    """Number of sampled responses; 0 where the prompt did not fit."""
    led: int
    """Number of sampled responses that lead to A*, including repeated ones."""


@dataclass(frozen=True)
class ReverseParser:
    """Finds thoughts for pairs of state and action."""

    policy: Policy
    engine: Engine
    """The engine that samples from that policy; nothing else uses it."""
    prompter: Prompter
    parse: Parser
    sampling: Sampling
    environment: str
    rendering: str
    """Name of the rendering, for the rows of the file."""
    samples: int
    """k, responses per state."""
    best: int | None
    """The most thoughts kept per state; None keeps all."""
    told: bool
    answer: Answer
    seed: int

    def __call__(self, targets: Sequence[Target]) -> list[FoundThoughts]:
        """The result for each target. It depends only on the target, its task and the seed."""
        prompts = [self.prompter.rendering.prompt(target.state) for target in targets]
        asked = self._asked(targets, prompts)
        wishes = [(row, sample) for row in asked for sample in range(self.samples)]
        seeds = [
            derive(self.seed, "thought", targets[row].state.task.task_id, targets[row].step, sample)
            for row, sample in wishes
        ]
        completions = generate(self.engine, [asked[row] for row, _ in wishes], self.sampling, seeds)
        answers: dict[int, list[str]] = {row: [] for row in asked}
        for (row, _), completion in zip(wishes, completions, strict=True):
            response = self._response(targets[row], completion)
            if response is not None:
                answers[row].append(response)
        return [
            self._ranked(target, prompts[row], answers[row]) if row in asked else FoundThoughts((), 0, 0)
            for row, target in enumerate(targets)
        ]

    def _asked(self, targets: Sequence[Target], prompts: Sequence[str]) -> dict[int, TokenIds]:
        """Row to the engine's prompt, where the plain prompt is within its budget and the hint fits too."""
        plain = self.policy.encode(prompts)
        below = [f"\n{HINT.format(action=target.action)}" if self.told else "" for target in targets]
        asked = self.policy.encode([prompt + hint for prompt, hint in zip(prompts, below, strict=True)])
        room = self.policy.context_length - self.sampling.max_new_tokens
        found = {}
        for row, target in enumerate(targets):
            whole = asked[row] + self._opening(target)
            if len(plain[row]) <= self.prompter.budget and len(whole) <= room:
                found[row] = whole
        return found

    def _opening(self, target: Target) -> TokenIds:
        """The beginning of a response of which only the thought is sampled."""
        if self.answer == "sampled":
            return ()
        return self.policy.encode_beginning(target.response.partition(target.thought)[0])

    def _response(self, target: Target, completion: Completion) -> str | None:
        """The response that was sampled or completed, if it leads to A* and was not cut off."""
        said, cut = self.policy.decode(completion.token_ids), completion.finish_reason == "length"
        if self.answer == "completed":
            before, _, behind = target.response.partition(target.thought)
            sampled = self.policy.text(completion.token_ids)
            thought, closed, _ = sampled.partition(behind.partition(">")[0] + ">")  # such as </think>
            thought = thought.strip() if closed or not cut else _whole_sentences(thought)
            said, cut = before + thought + behind, not thought
        if cut:
            return None
        parsed = self.parse(said)
        return said if parsed.action == target.action and parsed.invalid is None else None

    def _ranked(self, target: Target, prompt: str, answers: Sequence[str]) -> FoundThoughts:
        distinct = list(dict.fromkeys(answers))
        scored = sorted(
            zip(self._logprobs(prompt, distinct), distinct, strict=True), key=lambda each: -each[0][0]
        )
        thoughts = tuple(
            Thought(
                environment=self.environment,
                rendering=self.rendering,
                task_id=target.state.task.task_id,
                step=target.step,
                rank=rank,
                action=target.action,
                thought=self.parse(response).thought,
                prompt=prompt,
                response=response,
                logprob=logprob,
                tokens=tokens,
            )
            for rank, ((logprob, tokens), response) in enumerate(scored[: self.best])
        )
        return FoundThoughts(thoughts, self.samples, len(answers))

    def _logprobs(self, prompt: str, responses: Sequence[str]) -> list[tuple[float, int]]:
        """(log p(response | X), number of tokens) of each response, tokenized as imitation would do it."""
        if not responses:
            return []
        (asked,) = self.policy.encode([prompt])
        pairs = [(asked, self.policy.encode_response(response)) for response in responses]
        model = self.policy.model
        scored = response_logprobs(choose_scorer(model), pairs, 1.0, PASS_TOKENS, model.device)
        return [(float(logprobs.double().sum()), len(logprobs)) for logprobs in scored]


def _whole_sentences(text: str) -> str:
    """A thought without its last, unfinished sentence; empty if there is no other sentence."""
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s|$)", text)]
    return text[: ends[-1]].strip() if ends else ""
