"""The page's data: an episode as a row of a table, a whole episode, a dictionary's phrases.

The records are the contract between the page and its source of data: the server of ``skillpress view``, or
the data inside ``episodes.html``. In JSON a record is an object with the same names, and a tuple is a list.
Texts longer than :class:`PageLimits` are cut. The field of the same name with ``_cut`` then has the full
length; it is None if nothing was cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.trajectory import WeightSpan

SAME_TASK = 50
"""The most episodes of the same task that are listed with an episode."""

Token = tuple[str | None, int]
"""A token's text (None without a tokenizer) and its number; the joined texts are the full text."""
SampledToken = tuple[str | None, int, float | None]
"""The same with the log-probability (nats) under the distribution that it was sampled from."""


@dataclass(frozen=True, kw_only=True)
class PageLimits:
    """The limits of the page's data."""

    characters: int = 100_000
    """A text has at most this many characters."""
    tokens: int = 20_000
    """A prompt or response has at most this many tokens."""


@dataclass(frozen=True, kw_only=True)
class RolloutFile:
    """One rollout file."""

    source: int
    """Its number, counted from 0 in the order of the command line."""
    name: str
    """A name that separates it from the other sources, as short as possible."""
    path: str
    environment: str | None
    """The name of the episodes' environment; None if no tasks are known."""
    episodes: int
    steps: int
    """Steps that environments answered; summaries do not count."""


@dataclass(frozen=True, kw_only=True)
class Has:
    """Which data some of the episodes have."""

    skills: bool
    dictionary: bool
    advantages: bool
    tokens: bool
    """Texts of tokens. Their numbers and log-probabilities need no tokenizer."""


@dataclass(frozen=True, kw_only=True)
class OpenFiles:
    """The open files, and the values that filters may take."""

    title: str
    sources: tuple[RolloutFile, ...]
    policies: tuple[str, ...]
    outcomes: tuple[str, ...]
    strata: tuple[str, ...]
    reasons: tuple[str, ...]
    splits: tuple[str, ...]
    versions: tuple[int, ...]
    has: Has
    opens: str = ""
    """The filters of the list that the page opens with, as in an address; empty lists all episodes."""
    note: str | None = None
    """A remark for the page on where the episodes are from, such as how a sample was drawn."""
    skills_progress: float | None = None
    """The share of episodes whose costs are known; None if there is no dictionary."""


@dataclass(frozen=True, kw_only=True)
class EpisodeRow:
    """One episode in the list."""

    id: str
    """``<source>-<number of the episode in its file>``, which stays the same as long as the file does."""
    source: int
    task: str
    group: str
    """Training compares the episodes of a source that share a group."""
    policy: str
    """The policy that played; empty if the file does not say."""
    run: int
    rollout: int
    version: int
    """The training step whose weights played."""
    split: str | None
    """The task's split; None if no tasks are known. The same holds for ``stratum``."""
    stratum: str | None
    won: bool
    outcome: str
    steps: int
    invalid: int
    """Steps whose action was refused or could not be read."""
    reason: str | None
    """Why it was lost: its most common error (ties: the first by name), else its outcome; None if won."""
    reward: float | None
    """The sum over all its decisions, without shaping; None if the sum is not finite."""
    cost: int | None
    """Number of phrases in the cut of its skills; None without a dictionary, or without skills."""
    advantage: float | None
    """The mean over its decisions, if training used it."""


@dataclass(frozen=True, kw_only=True)
class EpisodePage:
    """A page of the episodes that match a query."""

    total: int
    """Number of matches so far."""
    rows: tuple[EpisodeRow, ...]
    complete: bool
    """Whether all episodes were examined; until then, repeating the request brings more."""
    progress: float
    """The share that was examined, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class ViewedRewardPart:
    """One named part of a step's reward."""

    name: str
    value: float | None
    """None if it is not finite; the same holds for all rewards and advantages."""
    credit: str


@dataclass(frozen=True, kw_only=True)
class ViewedStep:
    """One step of an episode, or a summary between two of them."""

    step: int
    """Counted from 0. A summary has the number of the step that follows it."""
    summary: bool
    prompt_length: int | None
    """Tokens in the prompt; None if it was not read, since prompts have their own request."""
    response_tokens: tuple[SampledToken, ...]
    response_tokens_cut: int | None
    thought: str
    thought_cut: int | None
    action: str | None
    """None for a summary."""
    action_cut: int | None
    observation: str
    observation_cut: int | None
    invalid: str | None
    reward_parts: tuple[ViewedRewardPart, ...]
    reward: float | None
    advantage: float | None
    weight_spans: tuple[WeightSpan, ...]
    """Empty if the episode's ``version`` holds for all tokens, or if nothing was sampled."""
    skills: tuple[str, ...]
    """Its skills in order; empty if the rules give none, and for a summary."""
    continues: int | None = None
    """The place among the episode's decisions of the one whose conversation it continues. None if it begins a
    conversation, and for all decisions of an episode that is not a tree, see ``core.beginnings``."""
    exactly: bool = False
    """Whether its prompt has that decision's response token by token."""


@dataclass(frozen=True, kw_only=True)
class CutPhrase:
    """One phrase of an episode's cut. Steps without a skill are in no phrase."""

    phrase: int
    """Its number in the dictionary."""
    skills: tuple[str, ...]
    first_step: int
    last_step: int
    """Inclusive; steps without a skill may lie between the two. A step with several skills may end one phrase
    and begin the next."""
    cost: float
    """Always 1: seg(s, 𝒞) counts phrases."""
    bits: float
    """log2 |𝒞|, the bits to name one phrase."""


@dataclass(frozen=True, kw_only=True)
class ViewedEpisode(EpisodeRow):
    """One whole episode."""

    first_observation: str
    first_observation_cut: int | None
    description: str | None
    """The task's spec as indented JSON; None if no tasks are known."""
    description_cut: int | None
    decisions: tuple[ViewedStep, ...]
    cut: tuple[CutPhrase, ...] | None
    """None without a dictionary; empty if no step has a skill."""
    siblings: tuple[EpisodeRow, ...]
    """The other episodes of its group, by rollout."""
    same_task: tuple[EpisodeRow, ...]
    """Other episodes of the same task, outside its group; at most ``SAME_TASK``."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The exact prompt that the policy saw before one decision."""

    tokens: tuple[Token, ...]
    tokens_cut: int | None
    """The full number of tokens, if fewer are here."""


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """One phrase of the dictionary."""

    phrase: int
    """Its number: single skills first, in the alphabet's order, then learned phrases in the order found."""
    skills: tuple[str, ...]
    uses: int
    """Uses in the corpus that the dictionary was fitted to."""
    episodes: int
    """Number of open episodes whose cut has it."""
    bits: float | None
    """Bits that it saves over the corpus compared with its single skills; None for a single skill."""
    history: tuple[tuple[int, int], ...] | None
    """(training step, uses), 0 if it was not learned there; None for single skills, or without training."""


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The dictionary's phrases; both are empty if there is no dictionary."""

    phrases: tuple[Phrase, ...]
    """Phrases of the dictionary that cuts the episodes, then phrases that only training's dictionaries had
    (``phrase`` continues counting; they have no uses and no episodes)."""
    singles: tuple[Phrase, ...]
