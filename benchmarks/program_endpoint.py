"""What the recording endpoint costs a call, beside direct sampling and beside a server of constants.

    python -m benchmarks.program_endpoint [--episodes 256] [--calls 20] [--output FILE]

64 programs play at once. Each keeps a connection and makes a number of calls with the headers of the openai
client; its conversation grows by an answer and a tool's result each time, and two tools are described. The
programs run in worker processes, and the figures are the processor milliseconds a call of *this* process:

- ``played``: episodes as they are really played. Endpoint, sessions, environments in threads, collector, and
  agent, with an engine that answers from a table. The engine's own time is subtracted.
- ``streamed``: the same with ``stream``.
- ``direct``: the same requests decided by the same agent and engine, without HTTP and without episodes.
- ``constant``: Starlette on the same server, which reads no body and sends an answer of the same size.
- ``client``: the workers' time in ``played``, with a client from the standard library.

``own_cost`` is ``played`` less ``direct``: what a call costs because its agent is a program. The prompt is
the request's text as bytes: a chat template and a tokenizer cost the same in every way to sample, so they are
left out.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import platform
import resource
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.machine import machine
from skillpress.core.engine import Completion, Promises, Request, Sampling, StateDict
from skillpress.core.interface import AgentState, DecisionRequest, Info
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Task, TokenIds, WeightSpan
from skillpress.core.web.server import Patience, server_of
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.programs.agent import ProgramAgent
from skillpress.rollouts.programs.forms.chat import read
from skillpress.rollouts.programs.functions import Called, Functions
from skillpress.rollouts.programs.requests import Asked, ModelRequest
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import Start
from skillpress.rollouts.programs.tool_calls import hermes

AT_ONCE = 64
GOAL_MS = 2.0
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "AsyncOpenAI/Python 3.57.0",
    "X-Stainless-Lang": "python",
    "X-Stainless-Package-Version": "3.57.0",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Arch": "x64",
    "X-Stainless-Runtime": "CPython",
    "X-Stainless-Runtime-Version": platform.python_version(),
    "X-Stainless-Async": "async:asyncio",
    "x-stainless-retry-count": "0",
    "x-stainless-read-timeout": "600",
}
"""Those of the openai client, which the server has to parse."""
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "what to do"},
                    "path": {"type": "string", "description": "the file's path"},
                    "lines": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["command"],
            },
        },
    }
    for name, description in (
        ("bash", "Runs a command in a shell."),
        ("edit", "Shows and edits a file."),
    )
]
SYSTEM = "You are a careful engineer. " * 20
RESULT = "src/main.py:12: a line of a tool's output that is as long as such lines are\n" * 4
ANSWER = (
    '<tool_call>\n{"name": "bash", "arguments": {"command": "grep -rn main src | head -4"}}\n</tool_call>'
)


def grown(calls: int) -> Iterator[list[dict[str, Any]]]:
    """The conversations of an episode's calls."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Find the fault and mend it."},
    ]
    for number in range(calls):
        yield messages
        call = {"name": "bash", "arguments": '{"command": "grep -rn main src | head -4"}'}
        called = {"id": f"call_{number}", "type": "function", "function": call}
        messages.append({"role": "assistant", "content": None, "tool_calls": [called]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": RESULT})


def play(task: dict[str, Any], base_url: str, api_key: str) -> int:
    """The program: it asks as often as its task says, and returns the number of its answers."""
    address, answered = urlsplit(base_url), 0
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
    for messages in grown(task["calls"]):
        body = json.dumps({"model": "policy", "messages": messages, "tools": TOOLS, "stream": task["stream"]})
        connection.request(
            "POST",
            f"{address.path}/chat/completions",
            body,
            HEADERS | {"Authorization": f"Bearer {api_key}"},
        )
        answer = connection.getresponse()
        said = answer.read()
        answered += answer.status == 200 and b"grep" in said
    connection.close()
    return answered


def verify(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Whether every call had its answer."""
    return bool(int(printed) == task["calls"] == len(calls))


class Table:
    """An engine that gives the same response to every prompt and notes its own processor time."""

    promises = Promises(exact_seeds=True, exact_logprobs=True, lockstep=False)

    def __init__(self) -> None:
        ids = tuple(ANSWER.encode())
        logprobs = np.full(len(ids), -0.1, np.float32)
        self._answer = Completion(
            token_ids=ids,
            logprobs=logprobs,
            finish_reason="stop",
            weight_spans=(WeightSpan(0, 0, len(ids)),),
        )
        self._queued: list[int] = []
        self.seconds = 0.0

    def submit(self, requests: Sequence[Request]) -> None:
        """Note the requests."""
        self._queued += [request.key for request in requests]

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """Answer all."""
        began = time.thread_time()
        found, self._queued = [(key, self._answer) for key in self._queued], []
        self.seconds += time.thread_time() - began
        return found

    def abort(self) -> None:
        """Forget the requests."""
        self._queued.clear()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """There are no weights."""

    def sleep(self) -> None:
        """Nothing is held."""

    def wake(self) -> None:
        """Nothing is needed."""

    def close(self) -> None:
        """Nothing is open."""


def render(request: ModelRequest) -> TokenIds:
    """The contents as bytes."""
    return tuple("".join(message.content for message in request.messages).encode())


def agent_of(engine: Table) -> ProgramAgent:
    """The agent that programs are played with."""
    return ProgramAgent(
        render=render,
        budget=1 << 20,
        read=hermes,
        decode=lambda ids: bytes(ids).decode(),
        reward=OutcomeReward(1.0, 0.0),
        engine=engine,
        sampling=Sampling(),
    )


def section() -> ProgramParameters:
    """The programs' section."""
    return ProgramParameters(
        name="program",
        max_steps=1000,
        run="benchmarks.program_endpoint:play",
        tasks="none",
        verify="benchmarks.program_endpoint:verify",
        seconds=600.0,
        isolation="none",
    )


def tasks(episodes: int, calls: int, stream: bool) -> list[Task]:
    """One task for each episode."""
    return [
        Task(
            f"task-{number}",
            "program",
            seed=number,
            spec={"id": str(number), "calls": calls, "stream": stream},
        )
        for number in range(episodes)
    ]


@contextmanager
def measured(found: dict[str, float], calls: int, engine: Table | None = None) -> Iterator[None]:
    """Note what the block costs this process and its children, in milliseconds a call."""

    def own() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def others() -> float:
        times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
        return float(sum(each.user + each.system for each in times))

    mine, theirs, clock = own(), others(), time.perf_counter()
    yield
    found["process_ms"] = 1000 * (own() - mine - (engine.seconds if engine else 0.0)) / calls
    found["client_ms"] = 1000 * (others() - theirs) / calls
    found["calls_per_second"] = calls / (time.perf_counter() - clock)


def played(episodes: int, calls: int, stream: bool) -> dict[str, float]:
    """Whole episodes."""
    found: dict[str, float] = {}
    engine = Table()
    shared = SharedPrograms(section(), AT_ONCE)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent_of(engine), AT_ONCE) as all_:
        all_.collect(requests(tasks(AT_ONCE, 1, stream), 1, 0, "warm"))
        engine.seconds = 0.0
        with measured(found, episodes * calls, engine):
            trajectories = all_.collect(requests(tasks(episodes, calls, stream), 1, 0, "benchmark"))
    assert all(each.won and len(each.steps) == calls for each in trajectories)
    return found


def direct(episodes: int, calls: int) -> dict[str, float]:
    """The same requests, decided by the agent without a server: 64 at once, in rounds."""
    engine, found = Table(), dict[str, float]()
    agent, task = agent_of(engine), Task("a", "program", seed=0, spec={})
    wanted = [read({"messages": messages, "tools": TOOLS}) for messages in map(list, grown(calls))]
    with measured(found, episodes * calls, engine):
        for first in range(0, episodes, AT_ONCE):
            for request in wanted:
                info = Info(state=Asked(request, 0))
                state = AgentState(task, "", info=info)
                agent.submit(
                    [DecisionRequest(key, state, key) for key in range(min(AT_ONCE, episodes - first))]
                )
                agent.completed(1.0)
    return found


def constant(episodes: int, calls: int) -> dict[str, float]:
    """A server that looks at nothing, asked by the same programs."""
    said = json.dumps({"choices": [{"message": {"content": ANSWER}}], "padding": "x" * 300}).encode()

    async def serve(request: HttpRequest) -> Response:
        await request.body()
        return Response(said, media_type="application/json")

    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/v1/chat/completions", serve, methods=["POST"])])
    server = server_of(app, Patience(connections=4096), lifespan="off", timeout_keep_alive=60)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    found: dict[str, float] = {}
    functions = Functions(Called(str(section().run), [Path.cwd()]), len(os.sched_getaffinity(0)))
    try:
        run_all(functions, url, tasks(AT_ONCE, 1, False))
        with measured(found, episodes * calls):
            run_all(functions, url, tasks(episodes, calls, False))
    finally:
        functions.close()
        server.should_exit = True
        thread.join()
        listening.close()
    return found


def run_all(functions: Functions, url: str, wanted: Sequence[Task]) -> None:
    """Run the program once for each task, 64 at once."""
    room, over = threading.Semaphore(AT_ONCE), list[Ended]()
    done = threading.Event()

    def ended(end: Ended) -> None:
        over.append(end)
        room.release()
        if len(over) == len(wanted):
            done.set()

    for task in wanted:
        room.acquire()
        functions.start(Start("key", url, task=task.spec, folder=Path(mkdtemp())), ended)
    assert done.wait(600)
    assert all(end.why is None for end in over), over[0]


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=256)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3, help="each way is measured so often, in turns")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    size = chosen.episodes, chosen.calls
    ways: dict[str, Callable[[], dict[str, float]]] = {
        "played": lambda: played(*size, stream=False),
        "streamed": lambda: played(*size, stream=True),
        "direct": lambda: direct(*size),
        "constant": lambda: constant(*size),
    }
    load = os.getloadavg()[0]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(chosen.repeats):
        for name, way in ways.items():
            runs[name].append(way())
    found = {
        name: {key: statistics.median(run[key] for run in own) for key in own[0]}
        for name, own in runs.items()
    }
    result = {
        "at_once": AT_ONCE,
        "episodes": chosen.episodes,
        "calls_of_an_episode": chosen.calls,
        "repeats": chosen.repeats,
        "medians": found,
        "own_cost_ms": found["played"]["process_ms"] - found["direct"]["process_ms"],
        "goal_ms": GOAL_MS,
        "runs": runs,
        "machine": machine(load),
    }
    print(json.dumps(result, indent=2))
    if chosen.output:
        write_json(chosen.output, result)


if __name__ == "__main__":
    main()
