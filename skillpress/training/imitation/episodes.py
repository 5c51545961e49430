"""Episodes that were played before, as samples of imitation (``imitation.episodes``).

Our own rollout files hold the tokens that the policy saw and sampled, and these are learned as they are. That
makes sense only with the same tokenizer, so a file whose tokens say something else than its actions is
refused. Logs of other agents are conversations. The policy's chat template renders them, and only the
assistant's turns are learned: each with the prompt that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from skillpress.core.chat_messages import Message, ToolCall
from skillpress.core.errors import ParamsError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Step, Trajectory
from skillpress.environments.calls.steps import acted, action_of
from skillpress.models.policy.policy import Policy
from skillpress.rollouts.programs.requests import ModelRequest, UnshownConversationError
from skillpress.rollouts.programs.tool_calls import Reader
from skillpress.training.imitation.samples import Sample, Samples

KIND = "conversations"
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.Int64,
    "messages": pl.String,
    "tools": pl.String,
    "learned": pl.List(pl.Int64),
}
COMPARED = 64
"""The number of a file's first episodes whose tokens are compared with what they say."""


@dataclass(frozen=True)
class RecordedConversation:
    """What another agent's model was shown and what it wrote. A run whose history was rewritten is several
    conversations."""

    run: int
    """The run's number; conversations of a run follow one another."""
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]
    """The tools in the form of chat completions; empty if the log does not list them."""
    learned: tuple[int, ...]
    """The messages to learn, all of them the assistant's."""


@dataclass(frozen=True)
class Gathered:
    """The episodes that a section names, before they are tokens."""

    rollouts: tuple[Path, ...]
    """Our own rollout files."""
    conversations: Path | None
    """The chosen runs of all other files, as :func:`write_conversations` wrote them; None without any."""
    only_won: bool
    """Whether only won episodes of rollout files are learned."""
    read: int
    """Number of episodes in the files."""
    won: int
    """How many of the read episodes were won, as far as the files say."""
    chosen: int
    """How many of the read episodes were chosen to be learned."""
    silent: int = 0
    """How many chosen runs are not learned, because their format keeps no messages."""

    def told(self, counts: Counts) -> str:
        """A sentence on the episodes that were read, chosen and used, with the reasons for the others."""
        parts = [
            f"{self.read:,} episodes read, {self.won:,} won, {self.chosen:,} chosen, "
            f"{counts.episodes:,} used with {counts.responses:,} responses"
        ]
        if self.silent:
            parts.append(f"{self.silent:,} are spans or events without the messages that the model was shown")
        if counts.too_long:
            parts.append(
                f"{counts.too_long:,} responses are too long for policy.context_tokens or "
                "sampling.max_new_tokens"
            )
        if counts.refused:
            parts.append(f"{counts.refused:,} responses were refused when they were played")
        if counts.unlike:
            parts.append(
                f"{counts.unlike:,} responses cannot be written by the chat template so that "
                "environment.calls reads them"
            )
        return "; ".join(parts)


@dataclass
class Counts:
    """What became of the chosen episodes."""

    episodes: int = 0
    """Episodes of which at least one response is learned."""
    responses: int = 0
    """Responses that are learned."""
    too_long: int = 0
    """Responses that do not fit, or whose prompt does not."""
    refused: int = 0
    """Responses of our own files that the parser or the environment refused."""
    unlike: int = 0
    """Responses that the chat template cannot show, or whose calls ``environment.calls`` would not read."""

    def add(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Count the learned responses of one episode."""
        self.episodes += bool(samples)
        self.responses += len(samples)
        return samples


@dataclass
class EpisodeSamples:
    """Makes samples that fit a policy, and counts the rest."""

    policy: Policy
    budget: int
    """The most tokens of a prompt."""
    longest_response: int
    """The most tokens of a response."""
    read: Reader | None = None
    """The reader of calls in the policy's responses; None outside programs."""
    counts: Counts = field(default_factory=Counts)

    def of(self, gathered: Gathered, file: Path) -> Samples:
        """All samples: those of rollout files in the section's order, then those of conversations.

        Args:
            file: is written, and mapped into memory.

        Raises:
            ParamsError: a file was sampled with another tokenizer, or nothing is left to learn.
            StorageError: a rollout file is damaged.
        """
        samples = Samples.written(file, self._each(gathered))
        if not samples:
            raise ParamsError(f"imitation.episodes: nothing can be learned: {gathered.told(self.counts)}")
        return samples

    def _each(self, gathered: Gathered) -> Iterator[Sample]:
        for file in gathered.rollouts:
            yield from self._of_rollouts(file, gathered.only_won)
        if gathered.conversations is not None:
            found = read_conversations(gathered.conversations)
            for _, run in groupby(found, attrgetter("run")):
                yield from self.counts.add([*chain.from_iterable(map(self._of_conversation, run))])

    def _of_rollouts(self, file: Path, only_won: bool) -> Iterator[Sample]:
        keep = pl.col("won") if only_won else None
        check_tokenizer(file, list(islice(iterate_rollouts(file, keep), COMPARED)), self.policy)
        for episode in iterate_rollouts(file, keep):
            yield from self.counts.add(list(self._of_steps(episode.decisions)))

    def _of_steps(self, steps: Iterable[Step]) -> Iterator[Sample]:
        for step in steps:
            if step.invalid is not None or not step.response_ids:
                self.counts.refused += 1
            elif sample := self._fitting((step.prompt_ids, step.response_ids)):
                yield sample

    def _of_conversation(self, conversation: RecordedConversation) -> Iterator[Sample]:
        for place in conversation.learned:
            asked = ModelRequest(conversation.messages[:place], conversation.tools)
            answer = conversation.messages[place]
            try:
                sample = self.policy.encode_exchange(asked, answer)
            except UnshownConversationError:
                self.counts.unlike += 1
                continue
            if self.read is not None and not _says(self.read(self.policy.decode(sample[1])).calls, answer):
                self.counts.unlike += 1
            elif fitting := self._fitting(sample):
                yield fitting

    def _fitting(self, sample: Sample) -> Sample | None:
        prompt, response = sample
        if len(prompt) <= self.budget and len(response) <= self.longest_response:
            return sample
        self.counts.too_long += 1
        return None


def check_tokenizer(file: Path, episodes: Sequence[Trajectory], policy: Policy) -> None:
    """Refuse a file whose tokens another tokenizer made: they would be other words here.

    A file holds tokens and, beside them, actions and first observations as text. Read with the right
    tokenizer, the responses say the actions, or the first prompts say the observations. (Not always both,
    because an environment may word either one differently.)

    Raises:
        ParamsError: fewer than half of these texts match.
    """
    steps = [step for each in episodes for step in each.steps if step.response_ids and step.invalid is None]
    largest = max(chain.from_iterable((*s.prompt_ids, *s.response_ids) for s in steps), default=0)
    why = f"it has token {largest}, and this policy has {policy.vocabulary}"
    if largest < policy.vocabulary:
        said = [(_words_of(step), _words(policy.decode(step.response_ids))) for step in steps]
        shown = [
            (_words(each.first_observation), _words(policy.text(each.steps[0].prompt_ids)))
            for each in episodes
            if each.steps and each.steps[0].prompt_ids
        ]
        says = _share(wanted <= heard for wanted, heard in said if wanted)
        shows = _share(2 * len(a & b) >= min(len(a), len(b)) for a, b in shown if a and b)
        if not steps or max(says, shows) >= 0.5:
            return
        why = f"only {100 * says:.0f}% of its responses say here the actions that it notes for them"
    raise ParamsError(
        f"imitation.episodes: {file}: was sampled with a tokenizer other than policy.model's: {why}; collect "
        "episodes with this model"
    )


def write_conversations(path: Path, conversations: Iterable[RecordedConversation]) -> None:
    """Write conversations, atomically."""
    rows = [
        (
            each.run,
            orjson.dumps([asdict(message) for message in each.messages]).decode(),
            orjson.dumps(each.tools).decode(),
            list(each.learned),
        )
        for each in conversations
    ]
    write_table(path, pl.DataFrame(rows, schema=SCHEMA, orient="row"), KIND)


def read_conversations(path: Path) -> Iterator[RecordedConversation]:
    """The conversations of a file, in order.

    Raises:
        StorageError: it is missing or damaged.
    """
    for run, messages, tools, learned in scan_table(path, KIND, SCHEMA).collect().iter_rows():
        yield RecordedConversation(
            run,
            tuple(
                Message(**{**each, "calls": tuple(ToolCall(**call) for call in each["calls"])})
                for each in orjson.loads(messages)
            ),
            tuple(orjson.loads(tools)),
            tuple(learned),
        )


def _says(calls: Sequence[ToolCall], answer: Message) -> bool:
    """Whether reading a written response gives the calls that it was written for."""
    return [(each.name, dict(each.arguments)) for each in calls] == [
        (each.name, dict(each.arguments)) for each in answer.calls
    ]


_WORD: Callable[[str], list[str]] = re.compile(r"\w+").findall


def _words(text: str) -> set[str]:
    return set(_WORD(text.lower()))


def _words_of(step: Step) -> set[str]:
    """The words of a step's action: of a call its tool and its argument."""
    said = acted(step.action, "", False)
    return set().union(*(_words(f"{each.tool or ''} {action_of(each)}") for each in said))


def _share(answers: Iterable[bool]) -> float:
    found = list(answers)
    return sum(found) / len(found) if found else 0.0
