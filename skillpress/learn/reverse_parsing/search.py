"""Thoughts that lead to known actions: sampled, parsed, kept where they do, and ranked.

Two things can be chosen. Whether the policy is *told* the action A*, below the prompt: a policy that seldom
finds it needs that; one that is not told leaves its own successes (rejection sampling, as in RFT). And who
*answers*:

    sampled    the response is the policy's to its end, and is kept where Parser(th) = A*
    completed  the thought alone is the policy's, without the sentence that it is cut off in; the
               demonstrator's answer stands behind it. For models too weak to keep a format, whose thoughts
               are then told apart by their rank alone

Equal responses count once. All are ranked by log p(response | X), in the prompt *without* the action, for
there they are to be learned: a thought that only makes sense to somebody who was told A* comes last. In
``completed`` the answer's own log-probability is part of it, so a thought after which A* is likely comes
first.

Left out: a length normalisation (the file has the tokens of each, for who wants one), and thoughts as
history: the states are those of the demonstration, whose earlier turns were not thought about.
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
from skillpress.learn.imitation.thoughts import Thought
from skillpress.learn.reverse_parsing.targets import Target
from skillpress.models.engines.generate import generate
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import PASS_TOKENS, response_logprobs
from skillpress.models.policy.scorers import choose_scorer
from skillpress.play.agents import Prompter

Answer = Literal["sampled", "completed"]

HINT = """\
The right action here is: {action}
Reason towards it from what you see above, as if nobody had told you, and answer in the form asked for.
"""
"""Stands below the prompt where the policy is told."""


@dataclass(frozen=True)
class Found:
    """What came of one target."""

    thoughts: tuple[Thought, ...]
    """The likeliest first."""
    sampled: int
    """Responses that were sampled; 0 where the prompt did not fit."""
    led: int
    """Of those, responses that lead to A*, repeated ones included."""


@dataclass(frozen=True)
class ReverseParser:
    """From states and actions to thoughts."""

    policy: Policy
    engine: Engine
    """Samples from that policy, and has nothing else to do."""
    prompter: Prompter
    parse: Parser
    sampling: Sampling
    environment: str
    rendering: str
    """Names, for the rows."""
    samples: int
    """k, responses per state."""
    best: int | None
    """Thoughts kept per state at most; None keeps all."""
    told: bool
    answer: Answer
    seed: int

    def __call__(self, targets: Sequence[Target]) -> list[Found]:
        """What is found for each; it depends on the target, its task and the seed alone."""
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
            self._ranked(target, prompts[row], answers[row]) if row in asked else Found((), 0, 0)
            for row, target in enumerate(targets)
        ]

    def _asked(self, targets: Sequence[Target], prompts: Sequence[str]) -> dict[int, TokenIds]:
        """Row to what the engine is given, where the plain prompt is within its budget and this one fits
        too."""
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
        """What the response begins with where the thought alone is sampled."""
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

    def _ranked(self, target: Target, prompt: str, answers: Sequence[str]) -> Found:
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
        return Found(thoughts, self.samples, len(answers))

    def _logprobs(self, prompt: str, responses: Sequence[str]) -> list[tuple[float, int]]:
        """(log p(response | X), its tokens) of each, as imitation would tokenize them."""
        if not responses:
            return []
        (asked,) = self.policy.encode([prompt])
        pairs = [(asked, self.policy.encode_response(response)) for response in responses]
        model = self.policy.model
        scored = response_logprobs(choose_scorer(model), pairs, 1.0, PASS_TOKENS, model.device)
        return [(float(logprobs.double().sum()), len(logprobs)) for logprobs in scored]


def _whole_sentences(text: str) -> str:
    """A thought without the sentence that it was cut off in; empty where there is no other."""
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s|$)", text)]
    return text[: ends[-1]].strip() if ends else ""
