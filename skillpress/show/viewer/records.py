"""What the page is given: one episode as a row of a table, one episode whole, a dictionary's phrases.

The records are the contract between the page and whoever feeds it, which is the server of ``skillpress view``
or the data within ``episodes.html``. As JSON a record is an object with the same names, and a tuple a list.
Texts beyond :class:`Limits` are cut, and the field of the same name with ``_cut`` then tells how long the
whole is; it is None where nothing was cut.
"""

from __future__ import annotations

from dataclasses import dataclass

SAME_TASK = 50
"""Episodes of the same task beside an episode, at most."""

Token = tuple[str | None, int]
"""A token's text and its number. The texts of a sequence follow each other without a gap and make up its
whole text; they are None where no tokenizer is at hand."""
SampledToken = tuple[str | None, int, float | None]
"""The same with the log-probability (nats) under the distribution that it was sampled from."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the page is given at most."""

    characters: int = 100_000
    """Of one text."""
    tokens: int = 20_000
    """Of one prompt or response."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One rollout file."""

    source: int
    """Its number, counted from 0 in the order of the command line."""
    name: str
    """What tells it from the others, as short as that can be."""
    path: str
    environment: str | None
    """Whose episodes they are; None where no tasks are known."""
    episodes: int
    steps: int
    """Steps that environments answered; summaries are none."""


@dataclass(frozen=True, kw_only=True)
class Has:
    """What can be shown of some of the episodes."""

    skills: bool
    dictionary: bool
    advantages: bool
    tokens: bool
    """Texts of tokens; their numbers and log-probabilities need no tokenizer."""


@dataclass(frozen=True, kw_only=True)
class About:
    """What is open, and the values that episodes may be filtered by."""

    title: str
    sources: tuple[Source, ...]
    policies: tuple[str, ...]
    outcomes: tuple[str, ...]
    strata: tuple[str, ...]
    reasons: tuple[str, ...]
    splits: tuple[str, ...]
    versions: tuple[int, ...]
    has: Has
    note: str | None = None
    """What the page should say of where the episodes are from, such as how a sample was drawn."""
    skills_progress: float | None = None
    """The share of episodes whose costs are known; None where there is no dictionary."""


@dataclass(frozen=True, kw_only=True)
class EpisodeRow:
    """One episode in the list."""

    id: str
    """``<source>-<number of the episode in its file>``, which stays the same as long as the file does."""
    source: int
    task: str
    group: str
    """Episodes of a source with the same group are judged against each other."""
    policy: str
    """Empty where the file does not say."""
    run: int
    rollout: int
    version: int
    """The training step whose weights played."""
    split: str | None
    """Of the task; None where no tasks are known. The same holds for ``stratum``."""
    stratum: str | None
    won: bool
    outcome: str
    steps: int
    invalid: int
    """Steps that were refused or could not be read."""
    reason: str | None
    """Why it was lost: what was wrong with most of its invalid steps (the first by name among equals), or
    its outcome where none was; None where it was won."""
    reward: float | None
    """The sum over all its decisions, without shaping; None where that is no finite number."""
    cost: int | None
    """Phrases that its skills are cut into; None without a dictionary, and without skills."""
    advantage: float | None
    """The mean over its decisions, where it was trained on."""


@dataclass(frozen=True, kw_only=True)
class EpisodePage:
    """Some episodes of those that a query finds."""

    total: int
    """Found in all, so far."""
    rows: tuple[EpisodeRow, ...]
    complete: bool
    """Whether all episodes were looked at. A text is searched and skills are worked out while one asks; until
    then the same question brings more."""
    progress: float
    """How much was looked at, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class RewardPart:
    """One named part of a step's reward."""

    name: str
    value: float | None
    """None where it is no finite number; so with all rewards and advantages."""
    credit: str


@dataclass(frozen=True, kw_only=True)
class WeightSpan:
    """Tokens ``start`` to ``end`` (exclusive) of a response were sampled from weights ``version``."""

    version: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One step of an episode, or a summary between two of them."""

    step: int
    """Counted from 0; a summary has the number of the step that it stands before."""
    summary: bool
    prompt_length: int | None
    """Tokens of the prompt, 0 where there is none. None where it was not read: prompts are most of a file,
    and are asked for by themselves (:class:`Prompt`)."""
    response_tokens: tuple[SampledToken, ...]
    response_tokens_cut: int | None
    thought: str
    thought_cut: int | None
    action: str | None
    """None of a summary."""
    action_cut: int | None
    observation: str
    observation_cut: int | None
    invalid: str | None
    reward_parts: tuple[RewardPart, ...]
    reward: float | None
    advantage: float | None
    weight_spans: tuple[WeightSpan, ...]
    """Empty where the episode's ``version`` says all, or nothing was sampled."""
    skill: str | None
    """None where the rules give none, and of a summary."""


@dataclass(frozen=True, kw_only=True)
class CutPhrase:
    """One phrase of an episode's cut. Steps without a skill stand in none."""

    phrase: int
    """Its number in the dictionary."""
    skills: tuple[str, ...]
    first_step: int
    last_step: int
    """Inclusive; between the two there may be steps without a skill."""
    cost: float
    """1: seg(s, 𝒞) counts phrases."""
    bits: float
    """log2 |𝒞|, what naming one phrase takes."""


@dataclass(frozen=True, kw_only=True)
class Episode(EpisodeRow):
    """One episode, whole."""

    first_observation: str
    first_observation_cut: int | None
    description: str | None
    """The task's spec as indented JSON; None where no tasks are known."""
    description_cut: int | None
    decisions: tuple[Decision, ...]
    cut: tuple[CutPhrase, ...] | None
    """None without a dictionary; empty where no step has a skill."""
    siblings: tuple[EpisodeRow, ...]
    """The other episodes of its group, by rollout."""
    same_task: tuple[EpisodeRow, ...]
    """Episodes of the same task that are no siblings, ``SAME_TASK`` at most."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What the policy saw before one decision, exactly."""

    tokens: tuple[Token, ...]
    tokens_cut: int | None
    """How many there are, where fewer are here."""


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """One phrase of the dictionary."""

    phrase: int
    """Its number: single skills first, in the alphabet's order, then learned ones as they were found."""
    skills: tuple[str, ...]
    uses: int
    """In the corpus that the dictionary was fitted to."""
    episodes: int
    """Episodes that are open here whose cut has it."""
    bits: float | None
    """What it saves in bits beside its skills one by one (over the corpus); None of a single skill."""
    history: tuple[tuple[int, int], ...] | None
    """(training step, uses) of every training step's dictionary, 0 where it was not in it; None where there
    was no training, and of single skills."""


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The dictionary's phrases; both are empty where there is no dictionary."""

    phrases: tuple[Phrase, ...]
    """Learned ones of the dictionary that episodes are cut by, then those that only training's had
    (``phrase`` counts on; they have no uses, no episodes)."""
    singles: tuple[Phrase, ...]
