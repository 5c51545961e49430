"""What imitation learns from: the tokens of demonstrated steps.

As text they take much more memory than as tokens, and a searching expert takes its time; so they are
tokenized some at a time, and what is tokenized is written at once. A process that is killed leaves
these parts to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from skillpress.agents import Prompter
from skillpress.interface import TokenIds
from skillpress.policy.policy import Policy
from skillpress.rollout.demonstrations import DemonstratedStep
from skillpress.trajectory import scan_table, write_table
from skillpress.unfinished import Every, Unfinished

KIND = "demonstrations"
STEPS_AT_ONCE = 10_000
"""Demonstrated steps that are held as text, at most."""
SCHEMA = {"prompt": pl.List(pl.Int64), "response": pl.List(pl.Int64)}

Sample = tuple[TokenIds, TokenIds]
"""A prompt and the response to learn."""


def demonstrated(
    demonstrate: Callable[[int], Iterator[list[DemonstratedStep]]],
    count: int,
    prompter: Prompter,
    policy: Policy,
    unfinished: Unfinished,
    on_demonstration: Callable[[int], None] = lambda done: None,
) -> list[Sample]:
    """The samples of ``count`` demonstrations, those of an interrupted process included.

    Args:
        demonstrate: makes those from a number on.
        unfinished: keeps the parts; a part's number is how many demonstrations are done with it.
        on_demonstration: told how many are done.

    Raises:
        StorageError: a part is damaged; the message names it.
    """
    parts = unfinished.parts(KIND)
    samples = [
        (tuple(prompt), tuple(response))
        for _, path in parts
        for prompt, response in scan_table(path, KIND, SCHEMA).collect().iter_rows()
    ]
    done = parts[-1][0] if parts else 0
    on_demonstration(done)
    steps: list[DemonstratedStep] = []
    every = Every()
    for number, demonstration in enumerate(demonstrate(done), done + 1):
        steps += demonstration
        if len(steps) >= STEPS_AT_ONCE or every() or number == count:
            fresh = tokenize(steps, prompter, policy)
            write_table(unfinished.part(KIND, number), pl.DataFrame(fresh, schema=SCHEMA, orient="row"), KIND)
            samples += fresh
            steps.clear()
        on_demonstration(number)
    return samples


def tokenize(steps: Sequence[DemonstratedStep], prompter: Prompter, policy: Policy) -> list[Sample]:
    """(prompt, response) tokens of demonstrated steps; those without a prompt that fits are left out."""
    prompts = prompter([step.state for step in steps])
    known = {response: policy.encode_response(response) for response in {s.response for s in steps}}
    return [
        (prompt, known[step.response])
        for prompt, step in zip(prompts, steps, strict=True)
        if prompt is not None
    ]
