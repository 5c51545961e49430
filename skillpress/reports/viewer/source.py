"""One rollout file with everything known about it: tasks, skills, the policy's tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from skillpress.core.beginnings import conversations
from skillpress.core.names import CodeNotRunError
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, TAKEN, TRAINING_COLUMNS, trajectories_of
from skillpress.core.trajectory import Skills, Task, WeightSpan
from skillpress.environments.section import Projection, projection_without_keys
from skillpress.reports.viewer.index import IndexedFile, open_rollouts
from skillpress.reports.viewer.records import CutPhrase, PageLimits, Prompt, ViewedRewardPart, ViewedStep
from skillpress.reports.viewer.skills import SkillsOf
from skillpress.reports.viewer.tokens import TokenTexts, sampled, tokens
from skillpress.skills.dictionary import SkillDictionary

PROJECTED = tuple(name for name in ROLLOUT_SCHEMA if name not in TRAINING_COLUMNS)
"""The columns that a projection may read."""
EPISODES_KEPT = 4
"""The most episodes whose prompts stay in memory, since a page asks for them one after the other."""


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """The files of a source."""

    name: str
    """A name that separates it from the other sources."""
    rollouts: Path
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Tasks by id; empty if none are known."""
    projection: Projection | None = None
    """φ by the rules in the experiment's parameters; None uses the environment's own."""
    tokenizer: Path | None = None
    """The folder of the policy's tokenizer."""
    advantages: Path | None = None
    """Training's values for the rows, in a file of ``training.describing.trained_episodes``."""


@dataclass(frozen=True)
class Told:
    """The parts of an episode that its row does not have."""

    first_observation: str
    decisions: tuple[ViewedStep, ...]
    cut: tuple[CutPhrase, ...] | None


class OpenSource:
    """A source with an indexed file."""

    def __init__(self, files: SourceFiles, dictionary: SkillDictionary | None) -> None:
        """Raises a StorageError if the rollouts or the tokenizer cannot be read."""
        self.files = files
        self.texts = TokenTexts(files.tokenizer) if files.tokenizer else None
        self.index: IndexedFile = open_rollouts(files.rollouts, files.advantages)
        self._dictionary = dictionary
        self._prompt_ids = lru_cache(EPISODES_KEPT)(self._read_prompts)

    @property
    def environment(self) -> str | None:
        """The name of the episodes' environment."""
        return next((task.environment for task in self.files.tasks.values()), None)

    @cached_property
    def skills(self) -> SkillsOf | None:
        """The skills and cuts of its episodes; None if no tasks are known, or if φ came with the experiment
        and is not imported."""
        if self.environment is None:
            return None
        with suppress(CodeNotRunError):
            projection = self.files.projection or projection_without_keys(self.environment)
            return None if projection is None else SkillsOf(projection, self._dictionary)
        return None

    def told(self, episode: int, limits: PageLimits) -> Told:
        """The content of an episode's rows.

        Raises:
            StorageError: the file was replaced after it was opened, or some of the episode's steps are
                missing.
        """
        rows = self._rows(episode)
        skills = self._skills(rows)
        cut = self.skills.cut(skills) if self.skills and skills is not None else None
        steps = iter(skills or [()] * int(rows.select(TAKEN.sum()).item()))
        decisions = tuple(
            decision(row, next(steps) if row["action"] is not None else (), self.texts, limits)
            for row in rows.iter_rows(named=True)
        )
        return Told(rows["first_observation"][0], self._connected(episode, rows, decisions), cut)

    def _connected(
        self, episode: int, rows: pl.DataFrame, decisions: tuple[ViewedStep, ...]
    ) -> tuple[ViewedStep, ...]:
        """The decisions with those that they continue, if they are a tree."""
        prompts = self._prompt_ids(episode).to_list()
        found = conversations([*zip(prompts, rows["response_ids"].to_list(), strict=True)])
        return tuple(
            decision if one is None else replace(decision, continues=one.call, exactly=one.exactly)
            for decision, one in zip(decisions, found or [None] * len(decisions), strict=True)
        )

    def prompts(self, episode: int, limits: PageLimits) -> Iterator[Callable[[], Prompt]]:
        """The prompts of an episode's decisions, as functions that decode them."""
        return (partial(self._prompt, ids, limits) for ids in self._prompt_ids(episode))

    def _prompt(self, ids: pl.Series, limits: PageLimits) -> Prompt:
        shown, cut = tokens(self.texts, ids.to_list(), limits.tokens)
        return Prompt(tokens=shown, tokens_cut=cut)

    def _read_prompts(self, episode: int) -> pl.Series:
        return self.index.rows(episode, ["prompt_ids"])["prompt_ids"]

    def _rows(self, episode: int) -> pl.DataFrame:
        """An episode's rows without their prompts, with ``advantage``."""
        rows = self.index.rows(episode, pl.exclude("prompt_ids"))
        if self.index.advantages is None:
            return rows.with_columns(advantage=pl.lit(None, pl.Float64))
        first = self.index.episodes["first_row"][episode]
        return rows.with_columns(advantage=self.index.advantages.slice(first, rows.height))

    def _skills(self, rows: pl.DataFrame) -> Sequence[Skills] | None:
        task = self.files.tasks.get(rows["task_id"][0])
        if self.skills is None or task is None:
            return None
        (trajectory,) = trajectories_of(rows.select(PROJECTED), self.files.rollouts)
        return self.skills.of(task, trajectory)


def decision(
    row: Mapping[str, Any], skills: Skills, texts: TokenTexts | None, limits: PageLimits
) -> ViewedStep:
    """A row of a rollout file in the form that the page shows."""
    response, response_cut = sampled(texts, row["response_ids"], row["logprobs"], limits.tokens)
    texts_shown: dict[str, Any] = {}
    for name in ("thought", "action", "observation"):
        texts_shown[name], texts_shown[f"{name}_cut"] = shortened(row[name], limits)
    return ViewedStep(
        step=row["step"],
        summary=row["action"] is None,
        prompt_length=None,
        response_tokens=response,
        response_tokens_cut=response_cut,
        **texts_shown,
        invalid=row["invalid"],
        reward_parts=tuple(
            ViewedRewardPart(name=part["name"], value=finite(part["value"]), credit=part["credit"])
            for part in row["reward_parts"]
        ),
        reward=finite(row["reward"]),
        advantage=finite(row["advantage"]),
        weight_spans=weight_spans(row),
        skills=skills,
    )


def weight_spans(row: Mapping[str, Any]) -> tuple[WeightSpan, ...]:
    """Which weights sampled which tokens of a row's response.

    An engine that gets its weights once, as in an evaluation, counts them as version 0, whichever training
    step they come from. Such spans carry no information; the episode's own ``version`` does.
    """
    spans = tuple(WeightSpan(**span) for span in row["weight_spans"])
    uncounted = row["policy_version"] > 0 and all(span.version == 0 for span in spans)
    return () if uncounted else spans


Text = TypeVar("Text", str, "str | None")


def shortened(text: Text, limits: PageLimits) -> tuple[Text, int | None]:
    """The beginning of a text, and its full length if the text was cut."""
    if text is None or len(text) <= limits.characters:
        return text, None
    return text[: limits.characters], len(text)


def described(task: Task | None) -> str | None:
    """A task's own description, as indented JSON."""
    if task is None:
        return None
    return json.dumps(dict(task.spec), indent=2, ensure_ascii=False, sort_keys=True)


def finite(value: float | None) -> float | None:
    """The number, or None if it is not finite."""
    return value if value is not None and isfinite(value) else None
