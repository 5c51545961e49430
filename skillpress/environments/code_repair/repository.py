"""The small repository that the agent works in: a program, its visible tests, and a description of the
program.

It is held in memory until the agent runs a command. From then on the working folder of a sandbox holds the
files. All data from the sandbox is treated as text and nothing more.
"""

from __future__ import annotations

import posixpath
import textwrap

from skillpress.environments.code_repair.edits import EditError
from skillpress.environments.code_repair.judge import MOST_CHARACTERS
from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.sandboxed import EpisodeSandbox
from skillpress.rollouts.sandbox import Execution, Sandbox

HOME = "/home/agent"
_NODE = """
class Node:
    def __init__(self, value=None, successor=None, successors=(), predecessors=(), incoming_nodes=(),
                 outgoing_nodes=()):
        self.value, self.successor = value, successor
        self.successors, self.predecessors = list(successors), list(predecessors)
        self.incoming_nodes, self.outgoing_nodes = list(incoming_nodes), list(outgoing_nodes)

"""
_MAIN = """
if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        try:
            test()
            print("passed", test.__name__)
        except Exception as error:
            print("FAILED", test.__name__, type(error).__name__, error)
"""


def files_of(program: Program) -> dict[str, str]:
    """The files that the agent finds. They contain nothing of the correct program and of the hidden tests."""
    return {
        program.file: program.faulty,
        f"test_{program.entry}.py": _script(program),
        "README.md": f"{program.file} holds the function {program.entry}, which is wrong.\n\n"
        f"{program.description}\n\nRun the tests: python3 test_{program.entry}.py\n",
    }


class Repository:
    """The files of one episode."""

    def __init__(self, program: Program, sandbox: EpisodeSandbox) -> None:
        self._files = files_of(program)
        self._sandbox = sandbox
        self._sandbox.prepare = self._prepare
        self._in_sandbox = False
        self._delivered: str | None = None

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            EditError: there is no such file, or it is not readable text.
            SandboxLostError: see ``EpisodeSandbox.call``.
        """
        path = within(path)
        if not self._in_sandbox:
            if path not in self._files:
                raise EditError(f"there is no file {path}; there are: {', '.join(self._files)}")
            return self._files[path]
        self._delivered = None
        code = f"with open({path!r}, errors='replace') as file: deliver(file.read({MOST_CHARACTERS + 1}))"
        done = self._sandbox.call(lambda sandbox: sandbox.execute(code))
        text: str | None = self._delivered
        if text is None:
            raise EditError(f"{path} cannot be read: {_last_line(done.error)}")
        if len(text) > MOST_CHARACTERS:
            raise EditError(f"{path} has more than {MOST_CHARACTERS} characters")
        return text

    def write(self, path: str, text: str) -> None:
        """Replace a file's text.

        Raises:
            EditError: it cannot be written.
            SandboxLostError: see ``EpisodeSandbox.call``.
        """
        path = within(path)
        if len(text) > MOST_CHARACTERS:
            raise EditError(f"{path} would have more than {MOST_CHARACTERS} characters")
        if not self._in_sandbox:
            self._files[path] = text
            return
        done = self._sandbox.call(lambda sandbox: sandbox.execute(_write(path, text)))
        if done.error is not None:
            raise EditError(f"{path} cannot be written: {_last_line(done.error)}")

    def run(self, command: str) -> Execution:
        """Run a command in the repository."""
        self._in_sandbox = True
        return self._sandbox.call(lambda sandbox: sandbox.bash(command))

    def _prepare(self, sandbox: Sandbox) -> None:
        """Write the files, in their last known state, into a new sandbox."""
        sandbox.use_tools({"deliver": self._take})
        python = "import os, sys; os.environ['PATH'] += ':' + os.path.dirname(sys.executable)"
        sandbox.execute("\n".join([python, *(_write(path, text) for path, text in self._files.items())]))

    def _take(self, text: str) -> None:
        self._delivered = text


def _write(path: str, text: str) -> str:
    return f"with open({path!r}, 'w') as file: file.write({text!r})"


def within(path: str) -> str:
    """Return the path relative to the repository's root.

    Raises:
        EditError: it leads out of the repository.
    """
    clean = posixpath.normpath(path.removeprefix(f"{HOME}/"))
    if clean.startswith(("/", "..")) or "\0" in clean:
        raise EditError(f"{path!r} is not in the repository; give a path from its root, such as README.md")
    return clean


def _last_line(error: str | None) -> str:
    return (error or "it was not").strip().splitlines()[-1]


def _script(program: Program) -> str:
    """The visible tests as an executable program."""
    tests = program.visible
    names = {name for test in tests for name in test.names} - {program.entry}
    parts = [f'"""Tests of {program.file}; more of them decide."""\n\nfrom {program.entry} import *\n']
    if any("Node(" in test.source for test in tests):
        parts.append(_NODE)
    parts += [f"{name} = {program.entry}\n" for name in sorted(names)]
    parts += [_function(number, test) for number, test in enumerate(tests, 1)]
    return "\n".join([*parts, _MAIN])


def _function(number: int, test: Check) -> str:
    return f"\ndef test_{number}():\n{textwrap.indent(test.source, '    ')}\n"
