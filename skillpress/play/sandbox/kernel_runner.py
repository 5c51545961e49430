"""A Jupyter kernel inside the walls, for code with magics. The host talks to it in the same way as to
``runner.py``.

There are two processes. This one does everything that the host relies on (messages, tools, interrupts, the
shell, the working folder). The other is ipykernel, which runs the cells and is reached over ipc, by sockets
in a folder that only this sandbox has. It prints to the same pipes as this process, so the host counts its
output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import types
import uuid
from collections.abc import Iterator

import zmq

from skillpress.play.sandbox.runner import ExitError, Interpreter, Message, ToolError, Wire, start

FOLDER = "/tmp/.kernel"
CONNECTION = {
    "transport": "ipc",
    "ip": f"{FOLDER}/socket",
    "shell_port": 1,
    "iopub_port": 2,
    "stdin_port": 3,
    "control_port": 4,
    "hb_port": 5,
    "key": "",
    "signature_scheme": "hmac-sha256",
}
"""There is no key: a process that can reach these sockets is inside the walls anyway."""
DELIMITER = b"<IDS|MSG>"
HELLO_MS = 20
"""Milliseconds between two requests that test whether the kernel answers."""
TRACEBACK_LINES = 24
END_OF_INPUT = "\x04"
"""ipykernel takes it for the end of a file."""

KERNEL = """
import sys
sys.path += {paths!r}
from traitlets.config import Config
from ipykernel import iostream, kernelapp
class IOPubThread(iostream.IOPubThread):
    def __init__(self, socket, pipe, session):
        super().__init__(socket, pipe=False, session=session)
kernelapp.IOPubThread = IOPubThread
config = Config()
config.HistoryManager.enabled = False
config.InteractiveShell.colors = "nocolor"
config.InteractiveShell.xmode = "Plain"
app = kernelapp.IPKernelApp.instance(
    config=config, connection_file={file!r}, outstream_class=None, log_level=50
)
app.initialize([])
app.start()
"""
"""Its output goes to this process's pipes, not into messages, as ``outstream_class`` would do. ipykernel
collects its children's output over TCP, for which zmq asks netlink. Seccomp forbids that, so this pipe is
turned off."""

TOOLS = """
def _make_tools(names):
    import json, os, threading
    from IPython import get_ipython
    class ToolError(Exception):
        '''A tool of the host says what is wrong.'''
    kernel, process = get_ipython().kernel, os.getpid()
    def make(name):
        def tool(*args, **kwargs):
            if os.getpid() != process or threading.current_thread() is not threading.main_thread():
                raise RuntimeError("tools can be called by the kernel's main thread only")
            call = json.dumps({{"call": name, "args": args, "kwargs": kwargs}})
            reply = json.loads(kernel.raw_input({mark!r} + call))
            if reply["error"] is not None:
                raise ToolError(reply["error"])
            return reply["value"]
        tool.__name__ = tool.__qualname__ = name
        tool.__doc__ = "Carried out by the host."
        return tool
    return {{name: make(name) for name in names}}
globals().update(_make_tools({names!r}))
del _make_tools
"""


class KernelEndedError(Exception):
    """The kernel's process has ended."""


class Client:
    """Sends Jupyter's messages to one kernel and receives them."""

    def __init__(self, kernel: subprocess.Popen[bytes]) -> None:
        """Return when the kernel answers; ``KernelEndedError`` if it ended before that."""
        self._session = uuid.uuid4().hex
        context = zmq.Context()
        self._sockets = {}
        for channel, kind in {"shell": zmq.DEALER, "stdin": zmq.DEALER, "iopub": zmq.SUB}.items():
            socket = context.socket(kind)
            socket.identity = self._session.encode()  # the kernel sends requests to the cell's sender
            socket.reconnect_ivl = 5
            socket.connect(f"ipc://{CONNECTION['ip']}-{CONNECTION[f'{channel}_port']}")
            self._sockets[channel] = socket
        self._sockets["iopub"].subscribe(b"")
        self._poller = zmq.Poller()
        for socket in self._sockets.values():
            self._poller.register(socket, zmq.POLLIN)
        self._end = os.pidfd_open(kernel.pid)
        self._poller.register(self._end, zmq.POLLIN)
        self._await_kernel()

    def send(self, channel: str, kind: str, content: Message, parent: Message | None = None) -> str:
        """Send a message and return its number, which the answers name as their parent's."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self._session,
            "username": "host",
            "date": "2000-01-01T00:00:00Z",
            "msg_type": kind,
            "version": "5.3",
        }
        parts = [json.dumps(part).encode() for part in (header, parent or {}, {}, content)]
        self._sockets[channel].send_multipart([DELIMITER, b"", *parts])
        return header["msg_id"]

    def received(self, wait_ms: int | None = None) -> Iterator[Message]:
        """Yield the messages received, waiting for the first at most ``wait_ms``; None waits without limit.

        Raises:
            KernelEndedError: no message has arrived and the kernel has ended.
        """
        ready = dict(self._poller.poll(wait_ms))
        for socket in self._sockets.values():
            if socket in ready:
                parts = socket.recv_multipart()
                header, parent, _, content = map(json.loads, parts[parts.index(DELIMITER) + 2 :][:4])
                yield {"kind": header["msg_type"], "header": header, "parent": parent, "content": content}
        if ready.keys() == {self._end}:
            raise KernelEndedError

    def _await_kernel(self) -> None:
        """Wait for answers on both channels: what the kernel publishes before is lost."""
        kinds: set[str] = set()
        while not {"kernel_info_reply", "status"} <= kinds:
            self.send("shell", "kernel_info_request", {})
            kinds |= {message["kind"] for message in self.received(HELLO_MS)}
        while list(self.received(HELLO_MS)):
            pass  # answers to the other requests


class Cell:
    """The output of one cell so far."""

    def __init__(self) -> None:
        self.result: str | None = None
        self.reply: Message | None = None
        self.idle = False


class KernelInterpreter(Interpreter):
    """Runs cells in the kernel and does everything else in this process."""

    def __init__(self, wire: Wire, shown_characters: int, paths: list[str]) -> None:
        """Return when the kernel answers."""
        super().__init__(wire, shown_characters)
        os.mkdir(FOLDER)
        file = f"{FOLDER}/connection.json"
        with open(file, "w") as written:
            json.dump(CONNECTION, written)
        self._mark = uuid.uuid4().hex
        self._cell_runs = False
        program = KERNEL.format(paths=paths, file=file)
        self._kernel = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-X", "frozen_modules=off", "-c", program],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "MALLOC_ARENA_MAX": "2", "JUPYTER_RUNTIME_DIR": FOLDER, "IPYTHONDIR": FOLDER},
        )
        try:
            self._client = Client(self._kernel)
        except KernelEndedError:
            self._end_as_it_did()

    def _on_interrupt(self, number: int, frame: types.FrameType | None) -> None:
        if self._cell_runs:
            self._kernel.send_signal(signal.SIGINT)
        else:
            super()._on_interrupt(number, frame)

    def _execute(self, request: Message) -> str | None:
        return self._run(request["code"])

    def _use_tools(self, request: Message) -> str | None:
        return self._run(TOOLS.format(mark=self._mark, names=request["names"]))

    def _run(self, code: str) -> str | None:
        """Run a cell; returns the value that it shows, or raises ``ExitError`` with its traceback."""
        content = {"code": code, "silent": False, "allow_stdin": True, "stop_on_error": True}
        cell = Cell()
        self._cell_runs = self._calls_allowed = True
        try:
            number = self._client.send("shell", "execute_request", content)
            while cell.reply is None or not cell.idle:
                for message in self._client.received():
                    if message["parent"].get("msg_id") == number:
                        self._take(cell, message)
        except KernelEndedError:
            self._end_as_it_did()
        finally:
            self._cell_runs = False
        assert cell.reply is not None
        for page in cell.reply.get("payload", ()):
            _show(page)
        if cell.reply["status"] != "ok":
            shown = _short("\n".join(cell.reply.get("traceback") or ()))
            raise ExitError(shown or cell.reply["status"])  # the code may have chosen to show nothing
        return cell.result

    def _take(self, cell: Cell, message: Message) -> None:
        content = message["content"]
        match message["kind"]:
            case "execute_result":
                cell.result = content["data"].get("text/plain")
            case "display_data" | "update_display_data":
                _show(content)
            case "status":
                cell.idle = content["execution_state"] == "idle"
            case "execute_reply":
                cell.reply = content
            case "input_request":
                self._client.send(
                    "stdin", "input_reply", {"value": self._answer_to(content)}, message["header"]
                )

    def _answer_to(self, content: Message) -> str:
        """The reply to a tool call. Requests for keyboard input get an end of file."""
        _, mark, call = content["prompt"].partition(self._mark)
        if not mark:
            return END_OF_INPUT
        try:
            return json.dumps({"value": self._call(json.loads(call)), "error": None})
        except (ToolError, ValueError) as error:
            return json.dumps({"value": None, "error": str(error)})

    def _end_as_it_did(self) -> None:
        """End this process with the kernel's exit code, which tells the host how the kernel ended."""
        code = self._kernel.wait()
        os._exit(code if code >= 0 else 128 - code)


def _show(displayed: Message) -> None:
    text = displayed.get("data", {}).get("text/plain")
    if text is not None:
        print(text)


def _short(text: str) -> str:
    lines = text.rstrip().splitlines()
    if len(lines) <= TRACEBACK_LINES:
        return "\n".join(lines)
    return "\n".join([lines[0], "  [...]", *lines[-TRACEBACK_LINES:]])


def main() -> None:
    """Set the limits, start the kernel, report the walls, and serve."""
    setting = json.loads(sys.argv[1])
    start(setting, lambda wire: KernelInterpreter(wire, setting["shown_characters"], sys.path))
