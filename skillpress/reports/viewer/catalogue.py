"""All open episodes, and the answers to the page's requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

import numpy as np
import polars as pl

from skillpress.core.errors import UserError
from skillpress.reports.viewer.index import joined
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.query import EpisodeQuery
from skillpress.reports.viewer.records import (
    SAME_TASK,
    Dictionary,
    EpisodePage,
    EpisodeRow,
    Has,
    OpenFiles,
    PageLimits,
    Prompt,
    RolloutFile,
    ViewedEpisode,
)
from skillpress.reports.viewer.search import TextSearch
from skillpress.reports.viewer.skills import Projected, SkillIndex
from skillpress.reports.viewer.source import OpenSource, SourceFiles, described, shortened

SEARCHES_KEPT = 8
SERVED = PageLimits()
ROW = tuple(EpisodeRow.__dataclass_fields__)


class NoSuchEpisodeError(UserError):
    """No episode, or no decision of the episode, has this number."""


class RolloutCatalogue:
    """Opened rollout files."""

    def __init__(
        self,
        title: str,
        files: Sequence[SourceFiles],
        phrases: KnownPhrases,
        note: str | None = None,
        opens_on: str = "",
    ) -> None:
        """
        Args:
            note: a remark for the page on the source of the episodes.
            opens_on: the policy whose episodes the page lists first, if it has played.

        Raises:
            StorageError: a file cannot be read.
            ParamsError: tasks belong to an environment that does not exist.
        """
        self._title, self._note, self._phrases, self._opens_on = title, note, phrases, opens_on
        self._sources = [OpenSource(each, phrases.dictionary) for each in files]
        self._episodes = joined([s.index for s in self._sources], [s.files.tasks for s in self._sources])
        self._starts = np.cumsum([0, *(source.index.episodes.height for source in self._sources)])
        self._skills = SkillIndex(
            [
                Projected(source.index, int(first), source.files.tasks, source.skills)
                for source, first in zip(self._sources, self._starts[:-1], strict=True)
                if source.skills is not None
            ],
            self._episodes.height,
            len(phrases.dictionary.phrases) if phrases.dictionary else 0,
        )
        self._searches: OrderedDict[str, TextSearch] = OrderedDict()
        self._lock = threading.Lock()
        self._skills.start()

    def __len__(self) -> int:
        return self._episodes.height

    def close(self) -> None:
        """End the background work."""
        self._skills.close()

    def answering(self) -> AbstractContextManager[None]:
        """Pause the background work while a request is answered."""
        return self._skills.resting()

    def wait(self) -> None:
        """Block until all costs are known."""
        self._skills.wait()

    def about(self) -> OpenFiles:
        """The open files and their filters."""
        return OpenFiles(
            title=self._title,
            sources=tuple(
                RolloutFile(
                    source=number,
                    name=source.files.name,
                    path=str(source.files.rollouts),
                    environment=source.environment,
                    episodes=source.index.episodes.height,
                    steps=int(source.index.episodes["steps"].sum()),
                )
                for number, source in enumerate(self._sources)
            ),
            policies=self._values("policy"),
            outcomes=self._values("outcome"),
            strata=self._values("stratum"),
            reasons=self._values("reason"),
            splits=self._values("split"),
            versions=self._values("version"),
            has=Has(
                skills=any(source.skills is not None for source in self._sources),
                dictionary=bool(self._phrases.phrases),
                advantages=any(source.index.advantages is not None for source in self._sources),
                tokens=any(source.texts is not None for source in self._sources),
            ),
            opens=self._opens(),
            note=" ".join(part for part in (self._note, self._skills.trouble) if part) or None,
            skills_progress=self._skills.progress,
        )

    def _opens(self) -> str:
        """The filters of the first list: the files in which the policy played beside others, as in an
        evaluation, or else those in which it played; empty if it has played alone, or not at all."""
        played = self._episodes.group_by("source").agg(pl.col("policy").unique()).sort("source")
        with_it = [(row[0], len(row[1])) for row in played.iter_rows() if self._opens_on in row[1]]
        beside = [source for source, policies in with_it if policies > 1] or [source for source, _ in with_it]
        if not self._opens_on or not with_it or self._episodes["policy"].n_unique() == 1:
            return ""
        chosen = beside if len(beside) < len(self._sources) else []
        return urlencode([*(("source", source) for source in chosen), ("policy", self._opens_on)])

    def page(self, query: EpisodeQuery) -> EpisodePage:
        """A page of the episodes that match a query.

        Raises:
            StorageError: a file was replaced after it was opened.
        """
        episodes = self.table()
        complete, progress = True, 1.0
        if query.needs_skills and not self._skills.complete:
            complete, progress = False, self._skills.progress or 0.0
        condition = query.condition
        if query.phrases:
            places = pl.Series(self._skills.episodes(query.phrases))
            condition &= pl.col("place").is_in(places.implode())
        if query.text is not None:
            search = self._search(query.text)
            condition &= pl.Series(self._found(query.text, search))
            complete, progress = complete and search.complete, min(progress, search.progress)
        found = query.ordered(
            episodes.filter(condition).select("place", *([query.sort] if query.sort else []))
        )
        places = found["place"].slice(query.offset, query.limit)
        return EpisodePage(
            total=found.height, rows=tuple(_rows(episodes[places])), complete=complete, progress=progress
        )

    def episode(self, name: str, limits: PageLimits = SERVED, beside: bool = True) -> ViewedEpisode:
        """One episode.

        Args:
            beside: whether to include its siblings and other episodes of its task.

        Raises:
            NoSuchEpisodeError: no episode has this name.
            StorageError: its file was replaced after it was opened, or some of its steps are missing.
        """
        source, number = self._find(name)
        row = next(_rows(self.table()[int(self._starts[source]) + number]))
        opened = self._sources[source]
        told = opened.told(number, limits)
        first, first_cut = shortened(told.first_observation, limits)
        description, description_cut = shortened(described(opened.files.tasks.get(row.task)), limits)
        return ViewedEpisode(
            **asdict(row),
            first_observation=first,
            first_observation_cut=first_cut,
            description=description,
            description_cut=description_cut,
            decisions=told.decisions,
            cut=told.cut,
            siblings=self._beside(row, _siblings(row)) if beside else (),
            same_task=self._beside(row, ~_siblings(row))[:SAME_TASK] if beside else (),
        )

    def name(self, place: int) -> str:
        """The id of an episode by its place among all episodes."""
        source = int(np.searchsorted(self._starts, place, side="right")) - 1
        return f"{source}-{place - int(self._starts[source])}"

    def prompts(self, name: str, limits: PageLimits) -> tuple[Prompt, ...]:
        """The prompts of all decisions of an episode, as the policy saw them."""
        source, number = self._find(name)
        return tuple(prompt() for prompt in self._sources[source].prompts(number, limits))

    def prompt(self, name: str, position: int) -> Prompt:
        """The prompt of one decision of an episode, as the policy saw it."""
        source, number = self._find(name)
        found = list(self._sources[source].prompts(number, SERVED))
        if position >= len(found):
            raise NoSuchEpisodeError(f"{name}: has no decision {position}")
        return found[position]()

    def dictionary(self) -> Dictionary:
        """The dictionary's phrases."""
        return self._phrases.told(self._skills.counts())

    def table(self) -> pl.DataFrame:
        """The columns of ``EpisodeRow`` (and others) of all episodes, as far as they are known so far."""
        return self._episodes.with_columns(place=pl.int_range(pl.len()), cost=self._skills.costs)

    def _values(self, column: str) -> tuple[Any, ...]:
        return tuple(self._episodes[column].drop_nulls().unique().sort())

    def _beside(self, row: EpisodeRow, condition: pl.Expr) -> tuple[EpisodeRow, ...]:
        """The other episodes of the same task."""
        others = pl.col("place") != int(self._starts[row.source]) + self._find(row.id)[1]
        return tuple(_rows(self.table().filter(others, pl.col("task") == row.task, condition)))

    def _find(self, name: str) -> tuple[int, int]:
        """An episode's source and number, by its id."""
        source, _, number = name.partition("-")
        if all(part.isascii() and part.isdigit() and len(part) < 10 for part in (source, number)):
            found = int(source), int(number)
            if found[0] < len(self._sources) and found[1] < self._sources[found[0]].index.episodes.height:
                return found
        raise NoSuchEpisodeError(f"{name[:40]!r}: no such episode")

    def _search(self, text: str) -> TextSearch:
        with self._lock:
            if text not in self._searches:
                self._searches[text] = TextSearch(text, [source.index for source in self._sources])
            self._searches.move_to_end(text)
            while len(self._searches) > SEARCHES_KEPT:
                self._searches.popitem(last=False)
            return self._searches[text]

    def _found(self, text: str, search: TextSearch) -> Any:
        try:
            return search.go_on()
        except UserError:
            with self._lock:
                self._searches.pop(text, None)
            raise


def _siblings(row: EpisodeRow) -> pl.Expr:
    """The condition for episodes of the same group."""
    return pl.all_horizontal(pl.col(name) == getattr(row, name) for name in ("source", "policy", "group"))


def _rows(episodes: pl.DataFrame) -> Iterator[EpisodeRow]:
    named = episodes.with_columns(id=pl.format("{}-{}", "source", "number")).select(ROW)
    return (EpisodeRow(**row) for row in named.iter_rows(named=True))
