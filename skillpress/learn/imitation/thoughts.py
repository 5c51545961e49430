"""Thoughts that lead to known actions, as a file: what reverse parsing leaves and imitation takes.

A row is a response that the parser reads as the action A* that is known to be right in its state. It is
kept as text, prompt and response, so that a policy with another tokenizer may learn from it: what one model
thought, a smaller one can be taught.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from skillpress.core.errors import ParamsError, StorageError
from skillpress.core.tables import scan_table
from skillpress.learn.imitation.dataset import Sample
from skillpress.models.policy.policy import Policy

KIND = "thoughts"
SCHEMA = {
    "environment": pl.String,
    "rendering": pl.String,
    "task_id": pl.String,
    "step": pl.Int64,
    "rank": pl.Int64,
    "action": pl.String,
    "thought": pl.String,
    "prompt": pl.String,
    "response": pl.String,
    "logprob": pl.Float64,
    "tokens": pl.Int64,
}


@dataclass(frozen=True)
class Thought:
    """One response that leads to the action A* in the state X."""

    environment: str
    """Its name; imitation refuses another one's thoughts."""
    rendering: str
    """The wording of X, as ``policy.rendering`` names it."""
    task_id: str
    step: int
    """k, counted from 0 within the demonstration."""
    rank: int
    """Place among the thoughts of this state, from 0, the likeliest first."""
    action: str
    """A*, as the parser reads it."""
    thought: str
    """As the parser reads it; empty where a response is nothing but an action."""
    prompt: str
    """X in words, without what the sampler was told and without a chat template."""
    response: str
    """What is to be learned, without special tokens."""
    logprob: float
    """log p(response | X) in nats under the policy that sampled, its stop token included."""
    tokens: int
    """Of the response, for that policy."""


def frame(thoughts: Iterable[Thought]) -> pl.DataFrame:
    """The rows of a file."""
    return pl.DataFrame([asdict(thought) for thought in thoughts], schema=SCHEMA)


def read_thoughts(path: str | Path, environment: str, rendering: str) -> list[tuple[str, str]]:
    """(prompt, response) of each row, in order.

    Raises:
        ParamsError: there is no such file, it holds none, or it was made for other prompts; the message
            begins with ``imitation.thoughts``.
    """
    try:
        rows = scan_table(path, KIND, SCHEMA).collect()
    except StorageError as error:
        raise ParamsError(f"imitation.thoughts: {error}; `skillpress reverse-parse` makes it") from error
    if not rows.height:
        raise ParamsError(f"imitation.thoughts: {path} holds no thought; sample more, or set it to null")
    for name, ours in (("environment", environment), ("rendering", rendering)):
        if others := sorted(set(rows[name]) - {ours}):
            raise ParamsError(
                f"imitation.thoughts: {path} was made for the {name} {others[0]!r}, and this experiment's is "
                f"{ours!r}"
            )
    return list(rows.select("prompt", "response").iter_rows())


def tokenize_thoughts(
    pairs: Sequence[tuple[str, str]], policy: Policy, budget: int, longest_response: int
) -> list[Sample]:
    """Samples of those that the policy has room for.

    Args:
        budget: tokens in a prompt at most.
        longest_response: tokens at which the policy's own responses are cut.

    Raises:
        ParamsError: there is room for none of them.
    """
    prompts = policy.encode([prompt for prompt, _ in pairs])
    samples = [
        (prompt, response)
        for prompt, response in zip(prompts, (policy.encode_response(said) for _, said in pairs), strict=True)
        if len(prompt) <= budget and len(response) <= longest_response
    ]
    if not samples:
        raise ParamsError(
            f"imitation.thoughts: none of its {len(pairs)} rows fits into policy.context_tokens ({budget} "
            f"for a prompt here) and sampling.max_new_tokens ({longest_response}); raise them"
        )
    return samples
