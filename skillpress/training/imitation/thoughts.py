"""A file of thoughts that lead to known actions; reverse parsing writes it and imitation reads it.

Each row has a response that the parser reads as A*, the action that is known to be right in its state. Prompt
and response are stored as text, so that a policy with another tokenizer can learn from them: a small model
can learn the thoughts of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.errors import ParamsError, StorageError
from skillpress.core.tables import scan_table
from skillpress.training.imitation.samples import Sample

if TYPE_CHECKING:
    from skillpress.models.policy.policy import Policy

KIND = "thoughts"


@dataclass(frozen=True)
class Thought:
    """One response that leads to the action A* in the state X."""

    environment: str
    """Name of the environment; imitation refuses thoughts of another one."""
    rendering: str
    """The wording of X, as ``policy.rendering`` names it."""
    task_id: str
    step: int
    """k, counted from 0 within the demonstration."""
    rank: int
    """Rank among the thoughts of this state, from 0; the likeliest is first."""
    action: str
    """A*, as the parser reads it."""
    thought: str
    """The thought, as the parser reads it; empty where a response is only an action."""
    prompt: str
    """X in words, without the hint that the sampler received and without a chat template."""
    response: str
    """The response to learn, without special tokens."""
    logprob: float
    """log p(response | X) in nats under the policy that sampled, its stop token included."""
    tokens: int
    """Number of tokens of the response for the policy that sampled."""


_TYPES = {"str": pl.String, "int": pl.Int64, "float": pl.Float64}
SCHEMA = {each.name: _TYPES[str(each.type)] for each in fields(Thought)}
"""A column for every field of a thought."""


def frame(thoughts: Iterable[Thought]) -> pl.DataFrame:
    """The rows of a file."""
    return pl.DataFrame([asdict(thought) for thought in thoughts], schema=SCHEMA)


def read_thoughts(path: str | Path, environment: str, rendering: str) -> list[tuple[str, str]]:
    """(prompt, response) of each row, in order.

    Raises:
        ParamsError: the file is missing or empty, or it was made for other prompts; the message begins
            with ``imitation.thoughts``.
    """
    try:
        rows = scan_table(path, KIND, SCHEMA).collect()
    except StorageError as error:
        raise ParamsError(f"imitation.thoughts: {error}; `skillpress reverse-parse` makes it") from error
    if not rows.height:
        raise ParamsError(f"imitation.thoughts: {path} has no thought; sample more, or set it to null")
    for name, ours in (("environment", environment), ("rendering", rendering)):
        if others := sorted(set(rows[name]) - {ours}):
            raise ParamsError(
                f"imitation.thoughts: {path} was made for the {name} {others[0]!r}, but this experiment's is "
                f"{ours!r}"
            )
    return list(rows.select("prompt", "response").iter_rows())


def tokenize_thoughts(
    pairs: Sequence[tuple[str, str]], policy: Policy, budget: int, longest_response: int
) -> list[Sample]:
    """Samples of the thoughts that fit the policy.

    Args:
        budget: the most tokens of a prompt.
        longest_response: number of tokens after which the policy's own responses are cut.

    Raises:
        ParamsError: none of them fits.
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
