"""f_agent that writes to the episode's store and shows the nearest entries as notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from skillpress.core.interface import AgentState, Info, StateUpdate
from skillpress.core.parsed_action import ParsedAction
from skillpress.rollouts.agents.state_updates import Window
from skillpress.rollouts.agents.store.database import Entry, EntryKind, EpisodeStore
from skillpress.rollouts.agents.store.embeddings import Embedding, embedding_of
from skillpress.rollouts.agents.store.facts import named_facts
from skillpress.rollouts.agents.store.parameters import StoreParameters
from skillpress.rollouts.agents.summarize import written

REQUEST = """\
But do not act yet. The past steps above leave your prompt. Write down in plain words all that you need of
them: what you found out, what you tried and what came of it, and what is still to be done. What you write is
kept, and your notes show it again when it resembles what you see.
"""


@dataclass(frozen=True)
class StoreSoFar:
    """The part of an episode that f_agent keeps outside its prompts (``AgentState.kept``)."""

    store: EpisodeStore
    steps: int = 0
    """Number of steps taken so far."""


@dataclass(frozen=True)
class Stored(Window):
    """Keeps the last ``turns`` turns, every entry in the store, and the nearest entries as notes."""

    section: StoreParameters
    embed: Embedding
    compact: bool
    """Whether prompts consist of the environment's few words; entries then have no words around them."""

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; its notes are the entries nearest to the observation."""
        kept = _kept(state)
        after = StoreSoFar(kept.store, kept.steps + 1)
        entries = []
        if "turns" in self.section.writes:
            entries += self._turn(after.steps, state.observation, action)
        if "facts" in self.section.writes:
            entries += self._facts(after, thought, info)
        after = replace(after, store=kept.store.with_entries(entries))
        recent = self._recent(state, thought, action, observation, info)
        return self._reminded(replace(recent, kept=after))

    def _recent(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        return super().__call__(state, thought, action, observation, info)

    def _reminded(self, state: AgentState) -> AgentState:
        """The state with the entries that are nearest to its observation, without the turns it shows."""
        kept = _kept(state)
        near = kept.store.nearest(
            self.embed(state.observation), self.section.shown, last_turn=kept.steps - len(state.history)
        )
        return replace(state, notes="\n".join(entry.words for entry in near))

    def _turn(self, step: int, observation: str, action: str) -> list[Entry]:
        plain = f"{observation} {action}"
        shown = plain if self.compact else f"Step {step}: you saw '{observation}' and did '{action}'."
        return self._entry(step, "turn", str(step), shown, plain)

    def _facts(self, kept: StoreSoFar, thought: str, info: Info) -> list[Entry]:
        """The facts that are new or have changed."""
        found = [
            self._entry(kept.steps, "fact", name, f"{name}: {text}", f"{name} {text}")
            for name, text in named_facts(thought, info).items()
        ]
        return [
            entry
            for entries in found
            for entry in entries
            if kept.store.newest("fact", entry.name) != entry.words
        ]

    def _entry(self, step: int, kind: EntryKind, name: str, shown: str, plain: str) -> list[Entry]:
        """The entry, cut to the maximum length; none for a text without words."""
        words = shown.split()
        if not plain.split():
            return []
        length = self.section.length
        cut = " ".join(words[:length]) if self.compact else " ".join(words)[:length].rstrip()
        return [Entry(step=step, kind=kind, name=name, words=cut, vector=self.embed(plain).tobytes())]


@dataclass(frozen=True)
class StoredSummaries(Stored):
    """Keeps all turns until the policy has summarized them. The summary is an entry of the store."""

    request: ClassVar[str] = REQUEST

    def due(self, state: AgentState) -> bool:
        """Whether there are as many turns as a prompt shows."""
        return self.turns is not None and len(state.history) >= max(1, self.turns)

    def read(self, response: str) -> ParsedAction:
        """The summary as a thought, see :func:`~skillpress.rollouts.agents.summarize.written`."""
        return written(response)

    def summed_up(self, state: AgentState, summary: ParsedAction) -> AgentState:
        """The state without its turns, and with the summary in the store if it is valid."""
        kept = _kept(state)
        if summary.invalid is None:
            shown = f"Summary after step {kept.steps}: {summary.thought}"
            entries = self._entry(kept.steps, "summary", str(kept.steps), shown, summary.thought)
            kept = replace(kept, store=kept.store.with_entries(entries))
        return self._reminded(replace(state, history=(), kept=kept))

    def _recent(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        return Window(None)(state, thought, action, observation, info)


USUAL = StoreParameters(shown=4, length=300, writes=["turns"])
"""The default section, for a state update that is made without one."""


def stored(turns: int | None, section: StoreParameters = USUAL, compact: bool = False) -> StateUpdate:
    """The state update that ``policy.store`` describes.

    Raises:
        ParamsError: the folder of the model that makes the vectors is missing.
    """
    make = StoredSummaries if "summaries" in section.writes else Stored
    return make(turns=turns, section=section, embed=embedding_of(section), compact=compact)


def _kept(state: AgentState) -> StoreSoFar:
    """The store of the episode; it is empty at the start."""
    return state.kept if isinstance(state.kept, StoreSoFar) else StoreSoFar(EpisodeStore())
