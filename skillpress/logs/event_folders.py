"""Conversations that are a folder with a file for each event, as OpenHands keeps its sessions.

Such a folder is one record: its events in the order of the numbers in their names. Its name, ``events``, says
nothing, so the record has the name of the folder above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from skillpress.logs.json_files import Value, parsed
from skillpress.logs.trace import UnreadableTraceError

FOLDER, COPIES = "events", "event_cache"
"""The folder of events, and a sibling folder with copies of them."""
_NAME = re.compile(r"(?:event-)?(\d+)(?:-[\w-]+)?\.json")


def event_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """The events of a folder, in order; none if it is another folder."""
    if folder.resolve().name != FOLDER:
        return []
    numbers = {name: int(found[1]) for name in names if (found := _NAME.fullmatch(name))}
    files = [folder / name for name in sorted(numbers, key=lambda name: (numbers[name], name))]
    return files if files and _is_event(files[0]) else []


def holds_copies(folder: Path) -> bool:
    """Whether a folder repeats the events beside it."""
    return folder.name == COPIES and (folder.parent / FOLDER).is_dir()


def event_values(folder: Path) -> Iterator[Value]:
    """The conversation of a folder as one value; events that cannot be read are values that say why."""
    events = list[Any]()
    for number, file in enumerate(event_files(folder, (path.name for path in folder.iterdir())), 1):
        event = _event(file)
        if isinstance(event, dict):
            events.append(event)
        else:
            why = str(event) if isinstance(event, UnreadableTraceError) else "is not an object"
            yield Value(number, -1, value=UnreadableTraceError(f"{file.name}: {why}"))
    yield Value(1, -1, value={"conversation_id": folder.resolve().parent.name, FOLDER: events})


def _event(file: Path) -> Any:
    try:
        return parsed(file.read_bytes())
    except OSError as error:
        return UnreadableTraceError(f"cannot be read ({error.strerror or error})")


def _is_event(file: Path) -> bool:
    event = _event(file)
    return isinstance(event, dict) and "source" in event
