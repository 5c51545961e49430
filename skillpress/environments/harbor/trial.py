"""One episode of a task in its root, from copying the files to reading the reward.

A task of several steps starts the agent again for each, in the same root; the tests of a step decide whether
the next one follows. The agent and the tests run in one isolation, one after the other, so processes that the
agent started still run during the tests. The tests are copied in when the agent has ended. As in Harbor's
shared mode, an agent could change the programs by which it is tested.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from skillpress.environments.harbor.dockerfile import PATH, folder_archive
from skillpress.environments.harbor.task_files import HarborStep, HarborTask
from skillpress.environments.program.verifier import Verdict
from skillpress.rollouts.programs.launch import CRASHED, Running, tail
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import Start
from skillpress.rollouts.sandbox.limits import MOST_WAITED
from skillpress.rollouts.workers.ranks import exit_in_words

REWARD_JSON, REWARD_TEXT = "/logs/verifier/reward.json", "/logs/verifier/reward.txt"
PRINTED_BY_TESTS, PRINTED_BY_ORACLE = "/logs/verifier/test-stdout.txt", "/logs/agent/oracle.txt"
SETUP, PRINTED_BY_SETUP = "setup.sh", "/logs/agent/setup.txt"
"""The script that a step runs before the agent, and the file for its output."""
SETUP_SECONDS = 600.0
NO_REWARD = "no_reward"
"""The outcome of an episode whose tests left no readable reward."""
MOST_ANSWERED = 8 << 20
"""The longest answer from inside, in bytes."""
OF_AGENT = ("PATH", "HOME")
"""Variables of the container that are replaced by the agent's own."""
ANSWER_SECONDS = 120.0
"""How long any request except a command may take. It is limited, because an agent's processes could stop the
process that answers."""
GOES_SECONDS = 1.0
"""How long an isolation may take to end by itself, before it is killed."""
END_SECONDS = 30.0
"""How long a killed command may take to end."""


class GoneError(RuntimeError):
    """The isolation has ended, or does not speak as it should."""


class InsideRoot:
    """Sends requests to ``inside.py`` in a root, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")

    def unpack(self, tar: bytes) -> None:
        """Unpack an archive at ``/``."""
        self._ask({"do": "unpack", "bytes": len(tar)}, tar)

    def remove(self, *paths: str) -> None:
        """Remove files and folders."""
        self._ask({"do": "remove", "paths": paths})

    def read(self, path: str) -> str | None:
        """A file's text, or its end; None if there is none."""
        found = self._ask({"do": "read", "path": path}).get("text")
        return found if isinstance(found, str) else None

    def run(
        self,
        command: Sequence[str],
        folder: str,
        variables: Mapping[str, str] | None = None,
        *,
        more: Mapping[str, str] | None = None,
        output: str | None = None,
        seconds: float | None = None,
    ) -> int | None:
        """The exit code of a command; None if ``end`` has ended it.

        Args:
            variables: its environment; None for that of the isolation and ``more``.
            output: the file for its output; None for the episode's.
            seconds: how long an answer is waited for; None for as long as it takes."""
        asked = {"command": command, "folder": folder, "variables": variables, "more": more or {}}
        code = self._ask({"do": "run", **asked, "output": output}, seconds=seconds).get("code")
        return code if isinstance(code, int) else None

    def end(self) -> None:
        """End the command that runs, if one does; called from another thread."""
        self._send(b'{"do": "end"}\n')

    def close(self) -> None:
        """End the conversation: a caller that waits for an answer gets a ``GoneError``."""
        with suppress(OSError):  # it has ended already
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _ask(
        self, asked: Mapping[str, Any], content: bytes = b"", seconds: float | None = ANSWER_SECONDS
    ) -> dict[str, Any]:
        self._connection.settimeout(seconds)
        self._send(json.dumps(asked).encode() + b"\n" + content)
        try:
            line = self._lines.readline(MOST_ANSWERED)
            said = json.loads(line) if line else None
        except (OSError, ValueError) as error:
            raise GoneError(f"{asked['do']}: {error}") from error
        if not isinstance(said, dict):
            raise GoneError(f"{asked['do']}: no answer")
        return said

    def _send(self, content: bytes) -> None:
        try:
            self._connection.sendall(content)
        except OSError as error:
            raise GoneError(str(error)) from error


@dataclass(eq=False)
class TaskRun:
    """A ``Running``: in a task's root, for each of its steps, the agent and then its tests."""

    task: HarborTask
    start: Start
    inside: InsideRoot
    files: bytes
    """An archive that is unpacked at ``/`` first."""
    solve: bool
    """Whether the task's solution is run in place of an agent."""
    seconds: float
    """How long the agent may take in a step that does not say."""
    arguments: Callable[[HarborStep], tuple[Sequence[str], Mapping[str, str]]]
    """The agent's arguments in a step, and variables."""
    ended: Callable[[Ended], None]
    """Called once, when the agent has ended."""
    process: Running = field(init=False)
    _step: HarborStep = field(init=False)
    _verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    """Names of steps that are judged, with what their tests said."""
    _program: str = "The program"
    """What has ended, in words."""
    _short: bool = False
    """Whether the tests of a step forbid the next one."""
    _over: threading.Event = field(default_factory=threading.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _told: bool = False
    _gone: threading.Event = field(default_factory=threading.Event, repr=False)
    _agent: threading.Thread | None = None

    def begin(self, command: Sequence[str]) -> None:
        """Start the agent by its command, or the task's solution."""
        self._agent = threading.Thread(target=self._play, args=(command,), name="trial", daemon=True)
        self._agent.start()

    def gone(self, end: Ended) -> None:
        """Note that the isolation has ended, and the agent with it."""
        self._gone.set()
        self._tell(end)

    def stop(self) -> None:
        """See ``Running``. An isolation that ends by itself is gone at once; collecting the processes of a
        killed one may take seconds.
        """
        self.inside.close()
        self._gone.wait(GOES_SECONDS)
        self.process.stop()

    def waited(self) -> float:
        """See ``Running``."""
        return self.process.waited()

    def judge(self) -> Verdict:
        """Run the tests of the last step that the agent has reached, and return the verdict of all steps'
        tests.
        """
        assert self._agent is not None
        self._over.set()
        try:
            if self._agent.is_alive():
                self.inside.end()
                self._agent.join(END_SECONDS)
            if self._agent.is_alive():
                return _unjudged(f"the agent still ran {END_SECONDS:g} s after its end")
            if not self._short:
                self._verdicts.append((self._step.settings.name, self._judged(self._step)))
        except GoneError as error:
            return _unjudged(f"the isolation ended while the tests ran: {error}")
        if len(self.task.steps) == 1:
            return self._verdicts[0][1]
        return of_steps(self._verdicts, self.task)

    def _judged(self, step: HarborStep) -> Verdict:
        self.inside.remove(REWARD_JSON, REWARD_TEXT, PRINTED_BY_TESTS, "/tests")
        for tests in step.tests:
            self.inside.unpack(folder_archive(tests, "/tests"))
        own = (self.task.settings.verifier.env, step.settings.verifier.env)
        code = self._within(
            self.task.test_seconds(step),
            lambda most: self._script("/tests/test.sh", PRINTED_BY_TESTS, *own, seconds=most),
        )
        found = {path: self.inside.read(path) for path in (REWARD_JSON, REWARD_TEXT, PRINTED_BY_TESTS)}
        return verdict(found, in_time=code is not None)

    def _play(self, command: Sequence[str]) -> None:
        try:
            self.inside.unpack(self.files)
            for number, step in enumerate(self.task.steps, 1):
                self._step = step
                code = self._work(step, command[0])
                if self._over.is_set() or code or number == len(self.task.steps):
                    break
                found = self._judged(step)
                if self._over.is_set():
                    break
                self._verdicts.append((step.settings.name, found))
                self._short = found.lost == NO_REWARD or not step.suffices(found.measures)
                if self._short:
                    break
        except GoneError:
            return  # ``gone`` says why
        printed = tail(self.start.printed)
        if code is None and self._over.is_set():
            return
        if not code or self._short:
            self._tell(Ended(None, printed))
        else:
            self._tell(Ended(CRASHED, f"{printed}\n{self._program} ended with {exit_in_words(code)}."))

    def _work(self, step: HarborStep, program: str) -> int | None:
        """The exit code of the agent in a step, or of the script before it; None if its time was over."""
        if step.workdir.is_dir():
            self.inside.unpack(folder_archive(step.workdir, self.task.place))
            if (step.workdir / SETUP).is_file():
                code = self._script(f"{self.task.place}/{SETUP}", PRINTED_BY_SETUP, seconds=SETUP_SECONDS)
                if code != 0:
                    self._program = f"{SETUP} of the step {step.settings.name}"
                    return 1 if code is None else code
        if self.solve:
            self.inside.unpack(folder_archive(step.solution, "/solution"))
            env = self.task.settings.solution.env
            return self._script("/solution/solve.sh", PRINTED_BY_ORACLE, env, seconds=None)
        own = {name: value for name, value in self.task.variables().items() if name not in OF_AGENT}
        arguments, more = self.arguments(step)
        command = [program, *arguments]
        if len(self.task.steps) == 1:  # the session ends it in time
            return self.inside.run(command, self.task.place, more=own | dict(more))
        return self._within(
            self.task.seconds(step, self.seconds),
            lambda most: self.inside.run(command, self.task.place, more=own | dict(more), seconds=most),
        )

    def _within(self, seconds: float, run: Callable[[float], int | None]) -> int | None:
        """Return the result of ``run`` with a limit of seconds, after which its command is ended. Time in
        which the command waited for a processor does not count.
        """
        before, credit = self.waited(), 0.0
        over = threading.Event()

        def watch() -> None:
            nonlocal credit
            until = time.monotonic() + seconds
            while not over.wait(max(0.0, until - time.monotonic())):
                new = min(self.waited() - before, MOST_WAITED * seconds) - credit
                if new < 0.05:
                    self.inside.end()
                    return
                credit, until = credit + new, time.monotonic() + new

        watching = threading.Thread(target=watch, name="limit", daemon=True)
        watching.start()
        try:
            return run((1 + MOST_WAITED) * seconds + END_SECONDS)
        finally:
            over.set()
            watching.join(END_SECONDS)

    def _script(
        self, path: str, output: str, *tables: Mapping[str, str], seconds: float | None
    ) -> int | None:
        """Run a script of the task with the container's variables and those of tables of task.toml."""
        variables = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        variables |= self.task.variables(*tables)
        return self.inside.run(["bash", path], self.task.place, variables, output=output, seconds=seconds)

    def _tell(self, end: Ended) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            self.ended(end)


def of_steps(verdicts: Sequence[tuple[str, Verdict]], task: HarborTask) -> Verdict:
    """The verdict on a task of several steps: success is a reward of 1 or more after the last one.

    The reward is the mean over the steps that were judged, or that of the last of them
    (``multi_step_reward_strategy``); an episode with a step without a reward has none.

    Args:
        verdicts: names of the steps that were judged, with what their tests said.
    """
    for name, found in verdicts:
        if found.lost == NO_REWARD:
            return _unjudged(f"step {name}: {found.said.strip()}")
    rewards = {name: found.measures["reward"] for name, found in verdicts}
    values = list(rewards.values())
    final = task.settings.multi_step_reward_strategy == "final"
    reward = values[-1] if final else sum(values) / len(values)
    return Verdict(len(values) == len(task.steps) and reward >= 1, {**rewards, "reward": reward})


def verdict(found: Mapping[str, str | None], in_time: bool) -> Verdict:
    """The verdict by the files that the tests left, by path: success is a reward of 1 or more."""
    printed = (found.get(PRINTED_BY_TESTS) or "")[-2000:]
    if not in_time:
        return _unjudged(f"tests/test.sh did not end within its time\n{printed}")
    kind = REWARD_JSON if found.get(REWARD_JSON) is not None else REWARD_TEXT
    text = found.get(kind)
    if text is None:
        return _unjudged(f"tests/test.sh left neither {REWARD_JSON} nor {REWARD_TEXT}\n{printed}")
    try:
        said = json.loads(text) if kind == REWARD_JSON else float(text)
        rewards = dict(said) if isinstance(said, dict) else {"reward": said}
        if not rewards or not all(
            isinstance(each, int | float) and math.isfinite(each) for each in rewards.values()
        ):
            raise ValueError("must be finite numbers")
        measures = {str(name): float(value) for name, value in rewards.items()}
    except (ValueError, TypeError) as error:
        return _unjudged(f"{kind} holds {text[:200]!r}: {error}\n{printed}")
    reward = measures.get("reward", next(iter(measures.values())))
    return Verdict(reward >= 1, {**measures, "reward": reward})


def _unjudged(why: str) -> Verdict:
    return Verdict(False, lost=NO_REWARD, said=f"\n{why}")
