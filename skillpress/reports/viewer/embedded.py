"""A sample of episodes as the data of a self-contained page.

The data are the server's answers, with one difference: each token is stored once, in a table for all
episodes, and prompts and responses refer to it by its index. If the page would become too large, parts are
left out: first the prompts of a long episode, then the episode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.page_file import self_contained
from skillpress.reports.viewer.records import PageLimits, Token

LIMITS = PageLimits(characters=10_000, tokens=4_000)
PROMPTS_BYTES = 200_000
"""The prompts of one episode have at most this many bytes."""
MOST_BYTES = 10_000_000
"""The page has at most this many bytes."""
LEFT_OUT_BYTES = 200
"""Bytes reserved for the remark that episodes were left out."""


@dataclass
class TokenTable:
    """The tokens of all episodes, each stored once."""

    places: dict[Token, int] = field(default_factory=dict)

    def of(self, tokens: Iterable[Token]) -> list[int]:
        """The index of each token."""
        return [self.places.setdefault(token, len(self.places)) for token in tokens]

    def forget(self, size: int) -> None:
        """Drop all but the first ``size`` tokens."""
        for token in list(self.places)[size:]:
            del self.places[token]


def episodes_page(
    catalogue: RolloutCatalogue, groups: Sequence[Sequence[int]], note: str, most_bytes: int = MOST_BYTES
) -> str:
    """The page with these episodes, as many as fit.

    Args:
        groups: places of episodes that are shown together or not at all; earlier ones matter more.
        note: how they were chosen.
    """
    free = most_bytes - len(self_contained(embedded(catalogue, [], note)).encode()) - LEFT_OUT_BYTES
    chosen: dict[int, dict[str, Any]] = {}
    table = TokenTable()
    for places in groups:
        before = len(table.places)
        told = {place: _told(catalogue, place, table) for place in places}
        size = sum(map(_size, [*told.values(), *list(table.places)[before:]]))
        if size <= free:
            chosen |= told
            free -= size
        else:
            table.forget(before)
    if left_out := sum(map(len, groups)) - len(chosen):
        note = f"{note} {left_out} of these would have made the page too large and are left out."
    return self_contained(_data(catalogue, [chosen[place] for place in sorted(chosen)], table, note))


def embedded(catalogue: RolloutCatalogue, places: Sequence[int], note: str | None = None) -> dict[str, Any]:
    """The data of a page with these episodes, in this order."""
    table = TokenTable()
    return _data(catalogue, [_told(catalogue, place, table) for place in places], table, note)


def _data(
    catalogue: RolloutCatalogue, episodes: list[dict[str, Any]], table: TokenTable, note: str | None
) -> dict[str, Any]:
    about = catalogue.about()
    return {
        "about": _plain(replace(about, note=" ".join(part for part in (note, about.note) if part) or None)),
        "episodes": episodes,
        "tokens": [list(token) for token in table.places],
        "dictionary": _plain(catalogue.dictionary()),
    }


def _told(catalogue: RolloutCatalogue, place: int, table: TokenTable) -> dict[str, Any]:
    """One episode as data. It blocks until costs are known."""
    catalogue.wait()
    name = catalogue.name(place)
    episode = catalogue.episode(name, LIMITS, beside=False)
    told: dict[str, Any] = _plain(episode)
    for part in ("siblings", "same_task"):
        told.pop(part)
    for decision, shown in zip(episode.decisions, told["decisions"], strict=True):
        tokens = table.of((text, number) for text, number, _ in decision.response_tokens)
        logprobs = [logprob for *_, logprob in shown["response_tokens"]]
        shown["response_tokens"] = [list(pair) for pair in zip(tokens, map(_short, logprobs), strict=True)]
    _add_prompts(catalogue, name, told["decisions"], table)
    return told


def _add_prompts(
    catalogue: RolloutCatalogue, name: str, decisions: list[dict[str, Any]], table: TokenTable
) -> None:
    before, size = len(table.places), 0
    for decision, prompt in zip(decisions, catalogue.prompts(name, LIMITS), strict=True):
        decision["prompt"], decision["prompt_cut"] = table.of(prompt.tokens), prompt.tokens_cut
        decision["prompt_length"] = prompt.tokens_cut or len(prompt.tokens)
        size += _size(decision["prompt"])
    if size > PROMPTS_BYTES:
        table.forget(before)
        for decision in decisions:
            decision["prompt"] = decision["prompt_cut"] = None


def _short(logprob: float | None) -> float | None:
    """A log-probability, rounded to the digits that its colour needs."""
    return None if logprob is None else round(logprob, 4)


def _size(value: Any) -> int:
    """Size in the page in bytes, where ``<`` takes six."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) + 5 * text.count("<") + 1


def _plain(record: Any) -> Any:
    """A record as JSON values; a number that JSON cannot write becomes null."""
    return orjson.loads(orjson.dumps(record))
