"""Responses that are sampled before their episode's turn.

A program may send several requests at once. Its episode handles them one after the other, but the engine can
sample them together: a response's seed derives from the request, and not from the turn. So the agent asks the
engine for all requests that an episode has open, and keeps the decisions until their turn comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from skillpress.core.interface import Decision

MOST = 4096
"""Maximum number of decisions that are kept. If there are more, the oldest is dropped, and sampled again at
its turn. Decisions of ended episodes are never used."""


@dataclass
class _Response:
    decision: Decision | None = None
    """None until the engine has answered."""
    wanted_by: int | None = None
    """The collector's key; None until the turn has come."""


@dataclass
class Ahead:
    """The responses requested ahead of their turn, by seed."""

    _numbers: count[int] = field(default_factory=lambda: count(-1, -1))
    """Keys for the engine. Those of a collector are not negative."""
    _seeds: dict[int, int] = field(default_factory=dict)
    """The seed of each key that the engine has not answered."""
    _responses: dict[int, _Response] = field(default_factory=dict)
    """The responses by seed, oldest first."""

    def begin(self, seed: int) -> int | None:
        """Return the key for asking the engine; None if it was asked already."""
        if seed in self._responses:
            return None
        key = next(self._numbers)
        self._seeds[key], self._responses[seed] = seed, _Response()
        return key

    def has(self, seed: int) -> bool:
        """Whether the engine was asked already."""
        return seed in self._responses

    def claim(self, key: int, seed: int) -> Decision | None:
        """The decision whose turn has come; None if the engine has not answered. ``settle`` then reports the
        answer.

        Args:
            key: the collector's.
        """
        found = self._responses[seed]
        if found.decision is None:
            found.wanted_by = key
            return None
        del self._responses[seed]
        return found.decision

    def settle(self, key: int, decision: Decision) -> int | None:
        """Store the engine's answer; return the collector's key if the decision's turn has come."""
        seed = self._seeds.pop(key)
        found = self._responses[seed]
        if found.wanted_by is not None:
            del self._responses[seed]
            return found.wanted_by
        found.decision = decision
        if len(self._responses) > MOST:
            kept = (each for each, response in self._responses.items() if response.decision is not None)
            del self._responses[next(kept)]
        return None

    def clear(self) -> None:
        """Forget everything."""
        self._seeds.clear()
        self._responses.clear()
