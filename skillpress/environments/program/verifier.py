"""Decide whether an episode succeeded, after the program's key is closed so that it cannot influence the
verdict."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.core.names import search_lab
from skillpress.rollouts.programs.requests import ModelRequest, Reply


@dataclass(frozen=True)
class Verdict:
    """What the verifier says."""

    success: bool
    measures: Mapping[str, float] = field(default_factory=dict)
    """Further facts in numbers."""
    lost: str = "unsuccessful"
    """The outcome of a program that ended by itself without success."""
    said: str = ""
    """Text that follows the program's output in the record."""


@dataclass(frozen=True)
class Played:
    """An episode as a verifier sees it."""

    task: Mapping[str, Any]
    printed: str
    """The program's output, or its return value: a text unchanged, anything else as JSON."""
    folder: Path
    """The folder that it worked in."""
    calls: Sequence[tuple[ModelRequest, Reply]]

    def as_arguments(self) -> dict[str, Any]:
        """The arguments of a verifying function, and the JSON of a verifying command."""
        calls = [
            {
                "messages": [message.plain() for message in request.messages],
                "content": reply.content,
                "tool_calls": [
                    {"name": call.name, "arguments": dict(call.arguments)} for call in reply.calls
                ],
            }
            for request, reply in self.calls
        ]
        return {"task": dict(self.task), "printed": self.printed, "folder": str(self.folder), "calls": calls}


Verify = Callable[[Played], Verdict]


class VerifierError(RuntimeError):
    """A verifier failed, took too long, or returned no readable verdict."""


def verifier(named: str | Sequence[str], seconds: float) -> Verify:
    """The verifier that ``environment.verify`` names.

    Args:
        seconds: maximum time for an episode; after it the verifier raises a ``VerifierError``.

    Raises:
        ParamsError: there is no such function.
    """
    if not isinstance(named, str):
        return lambda played: _ask(list(named), played, seconds)
    module, _, attribute = named.partition(":")
    search_lab()
    try:
        function = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ParamsError(f"environment.verify: {named} cannot be imported: {error}") from error
    return lambda played: _verdict(_called(function, named, played, seconds), named)


def _called(function: Callable[..., Any], named: str, played: Played, seconds: float) -> Any:
    """The function's answer. It runs in a thread of its own, which can be left behind if it never ends."""
    said: list[Any] = []
    failed: list[Exception] = []

    def call() -> None:
        try:
            said.append(function(**played.as_arguments()))
        except Exception as error:  # noqa: BLE001  raised again in the episode's thread
            failed.append(error)

    thread = threading.Thread(target=call, name="verifier", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise VerifierError(_late(named, played, seconds))
    if failed:
        raise failed[0]
    return said[0]


def _ask(command: list[str], played: Played, seconds: float) -> Verdict:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, complained = process.communicate(json.dumps(played.as_arguments()), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise VerifierError(_late(command[0], played, seconds)) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
    if process.returncode:
        raise VerifierError(
            f"environment.verify: {command[0]} exited with {process.returncode}: {complained.strip()[-2000:]}"
        )
    try:
        return _verdict(json.loads(printed), command[0])
    except ValueError as error:
        raise VerifierError(
            f"environment.verify: {command[0]} printed {printed[:200]!r}, which is not JSON"
        ) from error


def _late(named: str, played: Played, seconds: float) -> str:
    return (
        f"environment.verify: {named} has not judged task {played.task.get('id')!r} within {seconds:g} "
        "seconds; raise environment.verify_seconds, or fix the verifier"
    )


def _verdict(said: Any, who: str) -> Verdict:
    if isinstance(said, bool):
        return Verdict(said)
    if isinstance(said, Mapping) and isinstance(said.get("success"), bool):
        measures = {str(name): value for name, value in said.items() if name != "success"}
        wrong = {name: value for name, value in measures.items() if not _is_number(value)}
        if not wrong:
            return Verdict(said["success"], {name: float(value) for name, value in measures.items()})
        raise VerifierError(f"environment.verify: {who} returns {wrong}; measures must be finite numbers")
    raise VerifierError(
        f"environment.verify: {who} returns {said!r:.200}; it must return true, false, or "
        '{"success": true or false, "a measure": a number}'
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) and math.isfinite(value)
