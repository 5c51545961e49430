"""Plays programs against two servers while programs, workers and servers are killed at random."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Self

import psutil

from skillpress.core.chat_messages import Message
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task, TokenIds, Trajectory
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.server import VLLM, ServerParameters
from skillpress.rollouts.collection import Collector, EpisodeRequest, ThreadVectorEnv, requests
from skillpress.rollouts.programs.agent import ProgramAgent
from skillpress.rollouts.programs.requests import Asked, ModelRequest
from skillpress.rollouts.programs.start import MARK
from skillpress.rollouts.sandbox.processes import children_of_all, tree
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.rollouts.workers.parent import die_with_parent
from tests.support.models.tiny import tiny_policy
from tests.support.programs import PROGRAMS
from tests.support.programs.scripted_server_program import scripted
from tests.support.rollouts.program_parts import agent_of

AT_ONCE = 64
WAVE = 256
"""Episodes between two updates of the weights, at which a killed server is used again."""
START_SECONDS = 120.0
RECITING = "tests.support.programs.reciting_program"
POLICY = tiny_policy()
MOST_KILLS = 2
"""How often one command's episode is killed. The third time it would be ``lost``, as documented."""


class Servers:
    """Two servers, each a process."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.urls = []
        for _ in range(2):
            port = free_port()
            self.urls.append(f"http://127.0.0.1:{port}")
            self._start(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes.values():
            with process:
                process.kill()

    def kill_one(self, random: Random) -> None:
        """Kill one of them."""
        random.choice(list(self._processes.values())).kill()

    def revive(self) -> None:
        """Start the killed ones again."""
        for port, process in list(self._processes.items()):
            if process.poll() is not None:
                process.stdout.close()  # type: ignore[union-attr]
                self._start(port)

    def _start(self, port: int) -> None:
        command = [sys.executable, str(PROGRAMS / "scripted_server_program.py"), str(port), VLLM]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        self._processes[port] = process


def free_port() -> int:
    """A free port."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Killer:
    """Kills a process of the programs, or a worker, every now and then."""

    def __init__(self, random: Random, seconds: float, ended: Callable[[], int]) -> None:
        """Args:
        seconds: the least time between two kills; the most is three times that.
        ended: the number of episodes that have ended."""
        self._random, self._seconds, self._ended = random, seconds, ended
        self._next_worker = 0
        """The number of ended episodes from which a worker may be killed: its death hits dozens of episodes,
        and most of them must have ended before the next."""
        self._over = threading.Event()
        self._hit: Counter[str] = Counter()
        """Kills by episode; a worker has no episode of its own."""
        self.kills: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._work, name="killer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        pause = self._random.uniform(0.3, 1.0)
        while not self._over.wait(pause):
            pause = self._random.uniform(self._seconds, 3 * self._seconds)
            with suppress(ProcessLookupError):
                self._kill_one()

    def _kill_one(self) -> None:
        found = [each for each in victims() if self._hit[each[2]] < MOST_KILLS]
        if self._ended() < self._next_worker:
            found = [each for each in found if each[1] != "worker"]
        if found:
            pid, kind, task = self._random.choice(found)
            os.kill(pid, signal.SIGKILL)
            self.kills[kind] += 1
            self._hit[task] += bool(task)
            if kind == "worker":
                self._next_worker = self._ended() + AT_ONCE * 3 // 2


def victims() -> list[tuple[int, str, str]]:
    """(pid, kind, its episode's task) of each process that this process has started; a worker has no task.

    bwrap's own environment is empty, so that of what it isolates says the task. All is read from /proc, since
    psutil takes seconds for hundreds of processes while this one is busy: hardly anything would be killed.
    """
    children, found = children_of_all(), []
    for pid in tree(os.getpid(), children)[1:]:
        command, name = _read(pid, "cmdline").replace("\0", " "), _read(pid, "comm").strip()
        isolates = name in ("bwrap", "setpriv")
        if "function_worker" in command:
            found.append((pid, "worker", ""))
        elif task := _task_of(tree(pid, children) if isolates else [pid]):
            tool = command.startswith("sleep")
            found.append((pid, "isolation" if isolates else "tool" if tool else "program", task))
    return found


def _task_of(processes: Sequence[int]) -> str:
    """The task of the first of these that has one; empty if none has."""
    variables = (variable for pid in processes for variable in _read(pid, "environ").split("\0"))
    return next((each for each in variables if each.startswith("SKILLPRESS_TASK=")), "")


def _read(pid: int, name: str) -> str:
    """A file of a process in /proc; empty once it has ended."""
    try:
        return Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
    except OSError:
        return ""


def marked() -> list[psutil.Process]:
    """Living processes of programs that this process has started, also those of other parents."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mine = process.environ().get(MARK, "").startswith(f"{os.getpid()}:")
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def wanted(kind: str, episodes: int) -> list[EpisodeRequest]:
    """One task for each episode; every fourth command leaves a process behind."""
    tasks = [
        Task(
            f"{kind}-{number}",
            "program",
            number,
            {
                "id": f"{kind}-{number}",
                "start": number % 40,
                "calls": 2 + number % 3,
                "leaves": kind != "function" and number % 4 == 0,
            },
        )
        for number in range(episodes)
    ]
    return list(requests(tasks, 1, 0, "haunted"))


def section(kind: str) -> ProgramParameters:
    """The section of functions, commands or walled commands."""
    command = [sys.executable, "-S", str(PROGRAMS / "reciting_program.py")]
    return ProgramParameters(
        name="program",
        max_steps=6,
        run=f"{RECITING}:recite" if kind == "function" else command,
        tasks="none",
        verify=f"{RECITING}:verify",
        seconds=600.0,
        isolation="bubblewrap" if kind == "isolated" else "none",
    )


@contextmanager
def playing_with(servers: Servers) -> Iterator[ProgramAgent]:
    """The agent whose engine asks both servers."""
    parameters = ServerParameters(name="server", urls=servers.urls, answer_seconds=300.0, seeded=True)
    engine = parameters.make(POLICY, EngineDemand(longest=28, slots=AT_ONCE, ranks=Ranks()))
    agent = agent_of(POLICY, engine, longest=2)
    try:
        yield agent
    finally:
        agent.close()


def play(
    kind: str, wanted: Sequence[EpisodeRequest], servers: Servers, random: Random, seconds: float
) -> tuple[list[Trajectory], Counter[str]]:
    """The episodes of a kind, and the number of kills of each kind of process.

    Args:
        random: draws what is killed, and when.
        seconds: the least time between two kills.
    """
    found: dict[int, Trajectory] = {}
    kills: Counter[str] = Counter()

    def ended(number: int, trajectory: Trajectory) -> None:
        kills["twice"] += number in found
        found[number] = trajectory

    servers.revive()
    shared = SharedPrograms(section(kind), AT_ONCE)
    with (
        playing_with(servers) as agent,
        Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, AT_ONCE) as collector,
    ):
        numbered = list(enumerate(wanted))
        for wave, first in enumerate(range(0, len(numbered), WAVE)):
            servers.revive()
            agent.engine.update_weights(dict(POLICY.model.state_dict()), wave + 1)
            mine = numbered[first : first + WAVE]
            timer = threading.Timer(random.uniform(0.3, 1.5), servers.kill_one, [random])
            timer.start()
            with Killer(random, seconds, lambda: len(found)) as killer:
                collector.play(mine, ended)
            kills["server"] += not timer.is_alive()
            timer.cancel()
            timer.join()
            kills += killer.kills
    assert sorted(found) == list(range(len(wanted))), "an episode was lost"
    return [found[number] for number in range(len(wanted))], kills


def drawn(trajectory: Trajectory) -> list[tuple[TokenIds, TokenIds]]:
    """(prompt, response) of each step."""
    return [(step.prompt_ids, step.response_ids) for step in trajectory.steps]


def undisturbed(task: Task, seed: int) -> list[tuple[TokenIds, TokenIds]]:
    """The same of an episode in which nothing was killed, computed here.

    Args:
        seed: the episode's.
    """
    said, asked, steps = [str(task.spec["start"])], Counter[str](), []
    for _ in range(task.spec["calls"]):
        request = ModelRequest((Message("user", " ".join(said[-4:])),), max_tokens=1)
        draw = Asked(request, asked[request.digest]).draw
        asked[request.digest] += 1
        prompt = POLICY.encode_request(request)
        response = tuple(scripted(prompt, derive(seed, draw), 1))
        steps.append((prompt, response))
        said.append(POLICY.decode(response))
    return steps


def until_gone(look: object, seconds: float = 30.0) -> object:
    """The last finding of ``look``, which is asked until it finds nothing or the time is over."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.1)
    return found
