"""An isolated program that runs snippets, so that attacks on sandboxes can be tried against it as well."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillpress.core.storage import remove_tree
from skillpress.rollouts.programs.isolated import Isolated
from skillpress.rollouts.programs.launch import Commands
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import Start
from skillpress.rollouts.sandbox import Execution, Limits
from skillpress.rollouts.sandbox.isolation import Kind

RESULT, ERROR = "the result: ", "the error: "
LOST = "variables, files and processes are lost"
SNIPPET = f"""
import ast, sys
tree = ast.parse(sys.argv[1])
last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
scope = {{"__name__": "__main__"}}
try:
    exec(compile(tree, "snippet", "exec"), scope)
    if last is not None:
        found = eval(compile(ast.Expression(last.value), "snippet", "eval"), scope)
        print({RESULT!r} + repr(found), flush=True)
except Exception as error:
    print({ERROR!r} + f"{{type(error).__name__}}: {{error}}", flush=True)
"""


class IsolatedSnippets:
    """Each snippet is a program of its own; all have one folder."""

    def __init__(self, limits: Limits | None, isolation: Kind = "bubblewrap") -> None:
        self._isolation = isolation
        self._limits = replace(limits or Limits(), ip_sockets=True)
        self._root = Path(tempfile.mkdtemp(prefix="snippets-"))
        self._root.chmod(0o711)
        self._folder = self._root / "work"
        self._folder.mkdir(mode=0o700)

    def __enter__(self) -> IsolatedSnippets:
        return self

    def __exit__(self, *error: object) -> None:
        remove_tree(self._root)

    def execute(self, code: str) -> Execution:
        """What a program with this code prints, and how it ends."""
        with self.started(code) as (ended, printed):
            if not ended.wait(self._limits.seconds):
                return _told(printed(), f"did not stop: {LOST}")
        (end,) = self._ends
        return _told(end.printed, f"{end.why}: {LOST}: {end.printed}" if end.why else None)

    @contextmanager
    def started(self, code: str) -> Iterator[tuple[threading.Event, Callable[[], str]]]:
        """A running program; it is stopped at the end of the block."""
        self._ends: list[Ended] = []
        over = threading.Event()

        def ended(end: Ended) -> None:
            self._ends.append(end)
            over.set()

        command = [sys.executable, "-c", SNIPPET, code]
        start = Start("a-key", "http://127.0.0.1:8000/e/a-key", {}, self._folder)
        socket = self._root / "no-endpoint"
        socket.touch()
        isolated = Isolated(socket, command, limits=self._limits, isolation=self._isolation)
        running = Commands(command, isolated).start(start, ended)
        try:
            yield over, start.printed.read_text
        finally:
            running.stop()


def _told(printed: str, ended: str | None) -> Execution:
    """What a program printed, by the kind of each line.

    Args:
        ended: how it ended; None if by itself.
    """
    lines = printed.splitlines()
    result = next((line.removeprefix(RESULT) for line in lines if line.startswith(RESULT)), None)
    error = next((line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)), None)
    shown = [line for line in lines if not line.startswith((RESULT, ERROR))]
    return Execution("".join(f"{line}\n" for line in shown), "", result, ended or error, False)
