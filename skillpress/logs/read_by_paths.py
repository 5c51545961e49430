"""Any record as a trace: a few paths say where the runs, their messages and their outcomes are.

The value at ``run`` decides what it is. If it is a list or an object, it holds the record's runs, and each
run also has the fields around it. If it is a text or a number, it names the record's run, and all records
with this name are one run. ``messages`` may also be a list of calls; ``.`` means that each record is one
message or call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillpress.environments.calls.steps import text_of, unfolded
from skillpress.logs.chat import messages_of_answer, trace_of
from skillpress.logs.conversation import LoggedConversation, hashes_of, read_conversation
from skillpress.logs.fields import SuccessField, number, seconds, success_field
from skillpress.logs.outcome import FoundOutcome, outcome_of
from skillpress.logs.own_items import Items, plain_messages
from skillpress.logs.paths import HERE, described, nothing_at, splits, value_at, values_at
from skillpress.logs.trace import LeftOutError, ModelCallPlace, Trace, TracesError, UnreadableTraceError

PROMPT = "steps of the prompt"
NOT_WHERE = "records that `where` leaves out"

Names = Sequence[str]


class Run(dict[str, Any]):
    """One run of a record that holds several, with the fields around it; a list of messages is under
    ``.``."""


@dataclass(frozen=True)
class Paths:
    """Paths of the parts of a run. Each part may have several paths; the first with a value counts."""

    messages: Names = ()
    """The run's messages or calls; several lists (``*``) follow one another."""
    run: Names = ()
    """The runs of a record, or the name of the run that it belongs to. Empty: a record is a run."""
    outcome: Names = ()
    """The field that says how the run ended, perhaps with a condition: ``reward>=0.5``, ``status=solved``."""
    prompt: Names = ()
    """The messages, or the text, that the agent was given. Steps in it are not the agent's."""
    answer: Names = ()
    """The model's answer to ``messages``, where a record is one call of the model."""
    name: Names = ()
    task: Names = ()
    version: Names = ()
    time: Names = ()
    order: Names = ()
    """The field that orders the records of one run; without it they keep their order in the file."""
    once: Names = ()
    """The field that identifies a record of a run. Of records with the same value the last one counts, in the
    place of the first."""
    where: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """Maps paths to regular expressions; records without a match are left out."""
    item: Items | None = None
    """Where the parts of a message or call are, if it has no known form."""
    source: str = "--"
    """The prefix of a field's name in messages: ``--``, or the YAML file."""


@dataclass(frozen=True)
class ReadByPaths:
    """The functions of a format that some paths describe."""

    paths: Paths

    def recognises(self, record: Any) -> bool:
        """Whether the value can be a record: an object, or a list that is a complete run."""
        if isinstance(record, list):
            return self.of_items and not self.paths.run and not isinstance(next(iter(record), None), list)
        return isinstance(record, dict)

    @property
    def of_items(self) -> bool:
        """Whether each record is one message or call."""
        return tuple(self.paths.messages) == (HERE,)

    def runs(self, value: Any) -> Sequence[Any] | None:
        """The runs that a record holds; None if it is one itself."""
        if isinstance(value, Run) or not isinstance(value, dict):
            return None
        for path in self.paths.run:
            if found := list(_expanded(value, path, {}, path.endswith("*"))):
                return found
        return None

    def run_of(self, record: Any) -> str | None:
        """The run that a message or call belongs to; None if records are not such items."""
        if not self.of_items or isinstance(record, Run) or not isinstance(record, dict):
            return None
        if not self.paths.run:
            return ""
        name = value_at(record, self.paths.run)
        return None if name is None or isinstance(name, dict | list) else str(name)

    def read(self, record: Any) -> Trace:
        """The trace of a run, or of one call of the model.

        Raises:
            UnreadableTraceError: nothing is at a path, or it is neither messages nor calls.
            LeftOutError: ``where`` leaves the record out.
        """
        paths = self.paths
        rows = [each for each in _rows(record) if self._fits(each)]
        if not rows:
            raise LeftOutError(NOT_WHERE)
        if paths.once:
            rows = list({_identity(row, paths.once, place): row for place, row in enumerate(rows)}.values())
        if paths.order:
            rows = sorted(rows, key=lambda row: _ordered(value_at(row, paths.order)))
        line: Mapping[str, Any] = rows[0] if isinstance(rows[0], dict) else {}
        session = self._session(record)
        found = self._conversation(record, rows)
        trace = trace_of({key: held for key, held in line.items() if key != HERE}, found)
        return replace(trace, **self._named(record, trace), call=_call(found, session, bool(paths.answer)))

    def field(self, record: Any, path: str) -> Any:
        """The first value at a path."""
        return next((found for row in _rows(record) for found in values_at(row, path)), None)

    def _fits(self, row: Any) -> bool:
        return all(
            any(pattern.search(text_of(value)) for value in values_at(row, path))
            for path, pattern in self.paths.where.items()
        )

    def _session(self, record: Any) -> str:
        if not self.paths.run or isinstance(record, list | Run):
            return ""
        name = value_at(record, self.paths.run)
        if name is None or isinstance(name, dict | list):
            raise UnreadableTraceError(
                nothing_at(f"{self.paths.source}run", self.paths.run, record, "messages")
            )
        return str(name)[:200]

    def _conversation(self, record: Any, rows: Sequence[Any]) -> LoggedConversation:
        messages = list(self._messages(record, rows))
        prompt = self._prompt(rows[0])
        answer = value_at(rows[0], self.paths.answer)
        given = list(messages_of_answer(unfolded(answer)) or ())
        if answer is not None and not given:
            given = [{"role": "assistant", "content": text_of(answer)}]
        if self.paths.prompt:
            return completed(prompt, messages, bool(_listed_tools(rows[0])))
        return read_conversation(messages, given, tools=bool(_listed_tools(rows[0])))

    def _messages(self, record: Any, rows: Sequence[Any]) -> Iterator[Any]:
        """The messages of a run, one item after another."""
        items: list[Any] = []
        for row in rows:
            items += self._items(row, record)
        for place, item in enumerate(items):
            if self.paths.item is None:
                yield from plain_messages(item)
            else:
                yield from self.paths.item.messages(place, item)

    def _items(self, row: Any, record: Any) -> list[Any]:
        """The items of a record, or of the record that is one."""
        paths = self.paths
        if self.of_items:
            inside = row.get(HERE, row) if isinstance(row, dict) else row
            return inside if isinstance(inside, list) else [inside]
        for path in paths.messages:
            found = [unfolded(value) for value in values_at(row, path)]
            lists = [each if isinstance(each, list) else [each] for each in found]
            if found and all(isinstance(each, int | float) for each in found):
                option, is_that = f"{paths.source}messages", f"is {described(found[0])}"
                raise UnreadableTraceError(nothing_at(option, [path], row, "messages", is_that))
            if found and not all(each in ("", {}) for each in found):
                return [item for each in lists for item in each]
        raise UnreadableTraceError(nothing_at(f"{paths.source}messages", paths.messages, row, "messages"))

    def _prompt(self, row: Any) -> list[Any]:
        given = unfolded(value_at(row, self.paths.prompt))
        if given is None or isinstance(given, list):
            return given or []
        return [{"role": "user", "content": text_of(given)}]

    def _named(self, record: Any, trace: Trace) -> dict[str, Any]:
        """The facts about a trace, other than its steps, that the paths give."""
        paths, changed = self.paths, dict[str, Any]()
        for name in ("name", "task", "version"):
            found = (self.field(record, path) for path in getattr(paths, name))
            value = next((each for each in found if isinstance(each, str | int)), None)
            if value is not None:
                changed[name] = str(value)[:200]
        if not trace.name and "name" not in changed and not isinstance(record, Run) and paths.run:
            changed["name"] = str(self.field(record, paths.run[0]) or "")[:200]
        times = (seconds(self.field(record, path)) for path in paths.time)
        if (time := next((each for each in times if each is not None), None)) is not None:
            changed["time"] = time
        if paths.outcome:
            changed |= self._outcome(record)._asdict()
        return changed

    def _outcome(self, record: Any) -> FoundOutcome:
        for text in self.paths.outcome:
            said = success_field(text)
            value = self.field(record, said.path)
            if value is not None and (found := _outcome_of(said, value)) is not None:
                return found
        return FoundOutcome()


def _outcome_of(said: SuccessField, value: Any) -> FoundOutcome | None:
    """The outcome of a value under the user's condition; None if it decides nothing."""
    if isinstance(value, dict | list):
        found = outcome_of(said.path, value)
        return found if found.outcome else None
    score = number(value)
    try:
        success = said.of(value)
    except TracesError:
        success = None
    if score is not None and not math.isfinite(score):
        score = None
    return FoundOutcome(said.path, success, score) if success is not None or score is not None else None


def completed(prompt: Sequence[Any], completion: Sequence[Any], tools: bool = False) -> LoggedConversation:
    """The steps of a completion. Steps in the prompt are left out.

    Args:
        tools: whether the agent is known to have tools, so that tags of calls in its text are calls.
    """
    if not completion:
        return LoggedConversation()
    found = read_conversation(prompt, completion, tools=tools)
    if not found.earlier:
        return found
    left_out = found.left_out | {PROMPT: found.left_out.get(PROMPT, 0) + found.earlier}
    return replace(found, steps=found.steps[found.earlier :], earlier=0, left_out=left_out, shown=found.asked)


def _call(found: LoggedConversation, session: str, answered: bool) -> ModelCallPlace | None:
    if not session or not found.turns[found.asked :]:
        return None
    hashes = hashes_of(found.turns)
    if not answered:
        return ModelCallPlace(session, history=hashes, earlier=found.earlier)
    given = hashes[found.asked :]
    return ModelCallPlace(
        session,
        history=hashes[: found.asked],
        answer=given[0] if len(given) == 1 else None,
        earlier=found.earlier,
    )


def _expanded(value: Any, path: str, around: Mapping[str, Any], each: bool) -> Iterator[Run]:
    """The runs at a path, with the fields of all objects around them.

    Args:
        each: whether the path names every run, so that a list at its end is one run and not several.
    """
    value = unfolded(value)
    if not path:
        for run in value if isinstance(value, list) and not each else [value]:
            run = unfolded(run)
            if isinstance(run, dict):
                yield Run({**around, **run})
            elif isinstance(run, list):
                yield Run({**around, HERE: run})
        return
    name, _, rest = path.partition(".")
    if isinstance(value, dict) and name != "*":
        for name, rest in splits(path):
            if name in value:
                outside = {key: held for key, held in value.items() if key != name}
                yield from _expanded(value[name], rest, {**around, **outside}, each)
                return
    elif isinstance(value, dict):
        for inside in value.values():
            yield from _expanded(inside, rest, around, each)
    elif isinstance(value, list):
        for inside in value if name == "*" else value_at(value, (name,)) or ():
            yield from _expanded(inside, rest, around, each)


def _rows(record: Any) -> list[Any]:
    """The records of a run: those of a group, or the one that it is."""
    return record if isinstance(record, list) else [record]


def _identity(row: Any, paths: Names, place: int) -> tuple[bool, str]:
    value = value_at(row, paths)
    return (False, str(place)) if value is None else (True, text_of(value))


def _ordered(value: Any) -> tuple[int, float, str]:
    """A key that sorts numbers and times before texts."""
    moment = seconds(value)
    return (1, 0.0, str(value)) if moment is None else (0, moment, "")


def _listed_tools(row: Any) -> Any:
    return row.get("tools") if isinstance(row, dict) else None
