"""Logs as episodes to imitate (``imitation.episodes``): rollout files are used unchanged, all other logs
become conversations.

A run is learned if its log says that it was won. ``imitation.which`` may name another field of the records,
or select all runs. The log is read as ``skillpress skills`` reads it, so lines of single model calls are
joined to runs, and repeated histories are learned once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from skillpress.core.chat_messages import Message, Role, call_of, tool_of
from skillpress.core.errors import ParamsError
from skillpress.core.lab import found_here
from skillpress.core.rollout_files import TAKEN, scan_rollouts
from skillpress.environments.calls.steps import text_of
from skillpress.logs.conversation import hashes_of
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.log import Log, read_log
from skillpress.logs.messages import LoggedMessage
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import parts_at
from skillpress.logs.rollouts import is_rollouts
from skillpress.logs.trace import Trace, TracesError
from skillpress.training.imitation.episodes import Gathered, RecordedConversation, write_conversations
from skillpress.training.imitation.parameters import ALL, WON

MOST_BAD = 0.1
"""The share of a log's lines that may be damaged."""
AT_ONCE = 200
"""Maximum number of runs whose texts are in memory at once."""
CONVERSATIONS = "conversations.parquet"


def gather(files: Sequence[str], which: str, folder: Path) -> Gathered:
    """The episodes of files, in the working directory or the lab.

    Args:
        which: ``imitation.which``.
        folder: where the conversations are written.

    Raises:
        ParamsError: a file is missing or no log, or no episode was won; the message names the remedy.
        StorageError: a rollout file is damaged.
    """
    paths = [_found(file) for file in files]
    ours = [path for path in paths if path.is_file() and is_rollouts(path)]
    others = [path for path in paths if path not in ours]
    only_won = which != ALL
    outcomes = [won for path in ours for won in _outcomes(path)]
    read, won, chosen, silent = len(outcomes), sum(outcomes), sum(outcomes) if only_won else len(outcomes), 0
    if others:
        wanted, log = _read(others, which)
        succeeded = [place for place, trace in enumerate(log.traces) if trace.success]
        places = succeeded if only_won else [*range(len(log))]
        made = list(_conversations(log, wanted, places))
        write_conversations(folder / CONVERSATIONS, made)
        read, won, chosen = read + len(log), won + len(succeeded), chosen + len(places)
        silent = len(places) - len({each.run for each in made})
    if not chosen:
        raise ParamsError(
            f"imitation.episodes: none of the {read:,} episodes read says that it was won; name the field "
            f"that says so with imitation.which (reward>=1, extra.solved), or use all with {ALL!r}"
        )
    return Gathered(
        tuple(ours),
        folder / CONVERSATIONS if others else None,
        only_won=only_won,
        read=read,
        won=won,
        chosen=chosen,
        silent=silent,
    )


def _found(file: str) -> Path:
    path = Path(file) if Path(file).is_dir() else found_here(file)
    if not path.exists():
        raise ParamsError(f"imitation.episodes: {file}: no such file in the working directory or the lab")
    return path


def _outcomes(path: Path) -> list[bool]:
    """Whether each episode of a rollout file was won."""
    first = scan_rollouts(path).filter(TAKEN & (pl.col("step") == 0))
    return [bool(won) for won in first.select("won").collect().to_series()]


def _read(files: Sequence[Path], which: str) -> tuple[Wanted, Log]:
    try:
        wanted = Wanted(success=None if which in (WON, ALL) else success_field(which))
        return wanted, read_log(files, NameProjection(), wanted, MOST_BAD)
    except TracesError as error:
        said = str(error).replace("--success", "imitation.which").replace("--most-bad", "the share of")
        raise ParamsError(f"imitation.episodes: {said}") from error


def _conversations(log: Log, wanted: Wanted, places: Sequence[int]) -> Iterator[RecordedConversation]:
    """The conversations of some runs of a log, without runs whose format keeps no messages."""
    for begun in range(0, len(places), AT_ONCE):
        for place, parts in parts_at(log, wanted, places[begun : begun + AT_ONCE]):
            earlier = [piece.earlier for piece in log.traces[place].pieces]
            given = earlier if len(earlier) == len(parts) else [0] * len(parts)
            yield from conversations_of(place, parts, given)


def conversations_of(
    run: int, parts: Sequence[Trace], earlier: Sequence[int]
) -> Iterator[RecordedConversation]:
    """One run as conversations: one, plus one for each time that its history was rewritten.

    Args:
        earlier: how many of the first steps of each part are from its history. Steps that an earlier part
        already has are not learned again.
    """
    seen: set[int] = set()
    for part, given in zip(parts, earlier, strict=True):
        if part.dialogue is None:
            continue
        messages: list[Message] = []
        learned: list[int] = []
        steps, own = 0, hashes_of(part.dialogue.turns)
        for number, (turn, this) in enumerate(zip(part.dialogue.turns, own, strict=True)):
            if turn.role == "assistant":
                new = number >= part.dialogue.shown and (steps >= given or this not in seen)
                if new and messages and (turn.calls or text_of(turn.words).strip()):
                    learned.append(len(messages))
                steps += len(turn.calls) or 1
            messages += _messages(turn)
        seen.update(own)
        if learned:
            tools = tuple(map(tool_of, part.dialogue.tools))
            yield RecordedConversation(run, tuple(messages), tools, tuple(learned))


def _messages(turn: LoggedMessage) -> Iterator[Message]:
    answers = [Message("tool", text_of(each.content), answers=each.identity) for each in turn.answers]
    if turn.role == "assistant":
        calls = (call_of(call.tool, call.arguments, call.identity) for call in turn.calls)
        yield Message("assistant", text_of(turn.words), calls=tuple(calls))
        yield from answers  # of tools that the model's own server ran
        return
    yield from answers
    if turn.words is not None or not answers:
        role: Role = "system" if turn.role == "system" else "user"
        yield Message(role, text_of(turn.words))
