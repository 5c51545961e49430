"""The data of imitation: the tokens of demonstrated steps.

Text takes much more memory than tokens, and an expert that searches is slow. So demonstrations are tokenized
in parts, and each part is written at once and forgotten. If the process is killed, the next one continues
after these parts. A part's name says which demonstrations it has, so a missing part is made again, not
skipped.
All parts together become one file that training maps into memory (``samples.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import TokenIds
from skillpress.rollouts.agents import Prompter
from skillpress.training.imitation.demonstrations import DemonstratedStep
from skillpress.training.imitation.samples import Sample, Samples

if TYPE_CHECKING:
    from skillpress.models.policy.policy import Policy

KIND = "demonstrations"
STEPS_AT_ONCE = 10_000
"""The most demonstrated steps that are held as text."""
SCHEMA = {"prompt": pl.List(pl.Int64), "response": pl.List(pl.Int64)}


def demonstrated(
    demonstrate: Callable[[int], Iterator[list[DemonstratedStep]]],
    count: int,
    prompter: Prompter,
    policy: Policy,
    store: ResumeStore,
    on_demonstration: Callable[[int], None] = lambda done: None,
    grows: bool = False,
) -> Samples:
    """The samples of ``count`` demonstrations, including those of an interrupted process.

    Args:
        demonstrate: makes the demonstrations from a number on.
        store: keeps the parts.
        on_demonstration: receives the number of finished demonstrations.
        grows: whether a step's prompt extends the previous prompt and its response.

    Raises:
        StorageError: a part is damaged; the message names it.
    """
    parts = store.spans(KIND)
    done = parts[-1][0] if parts else 0
    on_demonstration(done)
    saved = done
    shown: list[list[DemonstratedStep]] = []
    steps = 0
    timer = SaveTimer()
    for number, demonstration in enumerate(demonstrate(done), done + 1):
        shown.append(demonstration)
        steps += len(demonstration)
        if steps >= STEPS_AT_ONCE or timer() or number == count:
            fresh = (
                tokenize_growing(shown, prompter, policy)
                if grows
                else tokenize([*chain.from_iterable(shown)], prompter, policy)
            )
            table = pl.DataFrame(fresh, schema=SCHEMA, orient="row")
            write_table(store.span(KIND, saved + 1, number), table, KIND)
            saved = number
            shown.clear()
            steps = 0
        on_demonstration(number)
    parts = store.spans(KIND)
    tables = (scan_table(path, KIND, SCHEMA).collect().to_arrow() for _, path in parts)
    return Samples.of_tables(samples_file(store), tables)


def samples_file(store: ResumeStore) -> Path:
    """The file of all samples of a store's demonstrations."""
    return store.folder / f"{KIND}.arrow"


def tokenize_growing(
    demonstrations: Sequence[Sequence[DemonstratedStep]], prompter: Prompter, policy: Policy
) -> list[Sample]:
    """Like :func:`tokenize`, for whole demonstrations whose prompts extend each other."""
    found: list[list[Sample]] = [[] for _ in demonstrations]
    contexts: list[TokenIds | None] = [None] * len(demonstrations)
    for number in range(max(map(len, demonstrations), default=0)):
        rows = [row for row, demonstration in enumerate(demonstrations) if number < len(demonstration)]
        steps = [demonstrations[row][number] for row in rows]
        states = [replace(step.state, context=contexts[row]) for row, step in zip(rows, steps, strict=True)]
        for row, step, prompt in zip(rows, steps, prompter(states), strict=True):
            contexts[row] = None
            if prompt is not None:
                response = policy.encode_response(step.response)
                found[row].append((prompt, response))
                contexts[row] = prompt + (policy.encode_response(step.played) if step.played else response)
    return [*chain.from_iterable(found)]


def tokenize(steps: Sequence[DemonstratedStep], prompter: Prompter, policy: Policy) -> list[Sample]:
    """(prompt, response) tokens of demonstrated steps, without steps whose prompt does not fit."""
    prompts = prompter([step.state for step in steps])
    known = {response: policy.encode_response(response) for response in {s.response for s in steps}}
    return [
        (prompt, known[step.response])
        for prompt, step in zip(prompts, steps, strict=True)
        if prompt is not None
    ]
