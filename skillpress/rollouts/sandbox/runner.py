"""The isolated interpreter: a single file that needs only the standard library, started by the host.

It reads requests from the socket that it inherits and runs them in one lasting namespace. It protects
nothing: code that runs here can change all of it. The protection is the isolation around it, and the host
checks every message from it.
"""

from __future__ import annotations

import ast
import base64
import builtins
import io
import json
import linecache
import os
import resource
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct(">I")
CHUNK_BYTES = 256 << 10
"""Size of an archive's piece in one message."""
TRACEBACK_FRAMES = 6
"""Number of frames that are shown, the innermost ones."""
PR_SET_DUMPABLE, PR_GET_NO_NEW_PRIVS = 4, 39


class Wire:
    """Length-prefixed JSON over the socket."""

    def __init__(self, connection: socket.socket, most_bytes: int) -> None:
        self._socket, self._most_bytes = connection, most_bytes

    def send(self, message: Message) -> None:
        body = json.dumps(message).encode()
        if len(body) > self._most_bytes:
            raise ValueError(f"{len(body)} bytes are too many for one message of at most {self._most_bytes}")
        self._socket.sendall(HEADER.pack(len(body)) + body)

    def receive(self) -> Message:
        (length,) = HEADER.unpack(self._exactly(HEADER.size))
        message: Message = json.loads(self._exactly(length))
        return message

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                os._exit(0)  # the host is gone
            data += part
        return bytes(data)


class Interpreter:
    """Carries out the host's requests one after the other."""

    def __init__(self, wire: Wire, shown_characters: int) -> None:
        self._wire, self._shown_characters = wire, shown_characters
        self._module = types.ModuleType("__main__")
        self._module.__dict__["__builtins__"] = builtins
        self._process = os.getpid()
        self._cell = 0
        self._talking = threading.RLock()
        self._interruptible = False
        self._calls_allowed = False

    def serve(self) -> None:
        """Answer requests until the host closes the connection."""
        sys.modules["__main__"] = self._module
        does: dict[str, Callable[[Message], str | None]] = {
            "execute": self._execute,
            "bash": self._bash,
            "tools": self._use_tools,
            "snapshot": self._snapshot,
            "reset": self._reset,
        }
        while True:
            request = self._wire.receive()
            answer = self._answer(does[request["do"]], request)
            _flush()
            if os.getpid() != self._process:
                os._exit(0)  # a child that returned from the cell that forked it
            with self._talking:  # a thread may still be calling a tool
                self._calls_allowed = False
                self._wire.send({"done": request["number"], **answer})

    def _answer(self, do: Callable[[Message], str | None], request: Message) -> Message:
        signal.signal(signal.SIGINT, self._on_interrupt)  # the last code may have set another handler
        try:
            result = do(request)
            self._interruptible = False
        except BaseException as error:  # noqa: BLE001  any exception of an agent's code is shown to the agent
            self._interruptible = False
            return {"result": None, "error": self._cut(_short_traceback(error))}
        return {"result": None if result is None else self._cut(result), "error": None}

    def _on_interrupt(self, number: int, frame: types.FrameType | None) -> None:
        if self._interruptible:
            raise KeyboardInterrupt

    def _cut(self, text: str) -> str:
        """Cut a text so that it fits into a message. The host cuts it again."""
        most = 2 * self._shown_characters
        return text if len(text) <= most else text[: most // 2] + text[-(most // 2) :]

    def _execute(self, request: Message) -> str | None:
        """Run code and return the value of the last expression as text."""
        self._cell += 1
        name = f"<cell {self._cell}>"
        code: str = request["code"]
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        self._interruptible = self._calls_allowed = True
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        space = self._module.__dict__
        exec(compile(tree, name, "exec"), space)
        if not isinstance(last, ast.Expr):
            return None
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is None:
            return None
        space["_"] = value
        return repr(value)

    def _bash(self, request: Message) -> str | None:
        """Run a command; its output goes to the interpreter's own stdout and stderr."""
        import subprocess

        self._interruptible = True
        shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", request["command"]],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = shell.wait()
        except BaseException:
            os.killpg(shell.pid, signal.SIGKILL)
            raise
        if code:
            raise ExitError(f"the command ended with exit code {code}")
        return None

    def _use_tools(self, request: Message) -> str | None:
        """Define functions with these names, carried out by the host, in the code's namespace."""
        for name in request["names"]:
            self._module.__dict__[name] = self._tool(name)
        return None

    def _tool(self, name: str) -> Callable[..., Any]:
        def tool(*args: Any, **kwargs: Any) -> Any:
            return self._call({"call": name, "args": args, "kwargs": kwargs})

        tool.__name__ = tool.__qualname__ = name
        tool.__doc__ = "Carried out by the host."
        return tool

    def _call(self, message: Message) -> Any:
        if os.getpid() != self._process:
            raise RuntimeError("tools can be called by the interpreter's own process only")
        main = threading.current_thread() is threading.main_thread()
        with self._talking:
            if not self._calls_allowed:
                raise RuntimeError("tools can be called only while a cell runs")
            if main:  # half a message would corrupt all that follow
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            try:
                self._wire.send(message)
                reply = self._wire.receive()
            finally:
                if main:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        if reply["error"] is not None:
            raise ToolError(reply["error"])
        return reply["value"]

    def _snapshot(self, request: Message) -> str | None:
        """Send the working folder as a tar archive, in pieces."""
        import tarfile

        with tarfile.open(mode="w|", fileobj=Pieces(self._wire), bufsize=CHUNK_BYTES) as archive:
            archive.add(request["folder"], arcname=".")
        return None

    def _reset(self, request: Message) -> str | None:
        """Replace the contents of the working folder by an archive that arrives in pieces."""
        import shutil
        import tarfile

        pieces = []
        while piece := self._wire.receive()["piece"]:
            pieces.append(base64.b64decode(piece))
        os.chdir(request["folder"])
        for entry in os.scandir("."):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry)
            else:
                os.unlink(entry)
        with tarfile.open(mode="r:", fileobj=io.BytesIO(b"".join(pieces))) as archive:
            archive.extraction_filter = lambda member, path: member  # it holds what this folder held
            archive.extractall(".")
        return None


class Pieces(io.RawIOBase):
    """Sends everything written to it as pieces of an archive."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def write(self, data: Any) -> int:
        self._wire.send({"piece": base64.b64encode(data).decode()})
        return len(data)


class ToolError(Exception):
    """A tool of the host reports an error."""


class ExitError(Exception):
    """A command failed."""


def limit(setting: Message) -> None:
    """Lower the limits of this process and of all its descendants; code inside cannot raise them."""
    limits = {
        resource.RLIMIT_AS: setting["address_space"],
        resource.RLIMIT_FSIZE: setting["file_bytes"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: setting["descriptors"],
        resource.RLIMIT_NPROC: setting["processes"],
    }
    for kind, most in limits.items():
        if most is not None:
            resource.setrlimit(kind, (most, most))


def close_memory() -> None:
    """Prevent other processes inside from reading or changing this one's memory, which holds the numbers of
    requests.

    All processes inside belong to one user, so the kernel would otherwise allow it. Forked children keep this
    protection; the programs that they execute do not.
    """
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the host checks whether it has worked


def take_socket(descriptor: int) -> socket.socket:
    """The inherited socket, moved away from the descriptors that code inside expects to use."""
    taken = os.dup(descriptor)
    with open(os.devnull, "rb") as nothing:
        if descriptor == 0:
            os.dup2(nothing.fileno(), descriptor)
        else:
            os.close(descriptor)
    return socket.socket(fileno=taken)


def isolation() -> Message:
    """The facts that the host checks first."""
    import ctypes

    with open("/proc/self/status") as status:
        parts = [line.partition(":") for line in status]
    lines = {name: value.strip() for name, _, value in parts}
    seen: Message = {name: lines.get(name) for name in ("Seccomp", "CapEff", "CapBnd")}
    seen["NoNewPrivs"] = ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
    with open("/proc/self/net/dev") as devices:
        interfaces = [line.split(":")[0].strip() for line in devices if ":" in line]
    # A process that cannot be dumped does not own the files of its own memory.
    memory = _tried(lambda: os.close(os.open("/proc/self/mem", os.O_RDONLY)))
    return {**seen, "process": os.getpid(), "interfaces": interfaces, "memory": memory}


def _tried(do: Callable[[], object]) -> str:
    """The type of the error that ``do`` raises, or ``done``."""
    try:
        do()
    except OSError as error:
        return type(error).__name__
    return "done"


def _flush() -> None:
    for stream in {
        id(stream): stream for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    }.values():
        try:
            stream.flush()  # type: ignore[union-attr]
        except BaseException:  # noqa: BLE001  code may have replaced it by anything
            continue


def _short_traceback(error: BaseException) -> str:
    """The innermost frames of the agent's code, without this file's."""
    if isinstance(error, ExitError):
        return str(error)
    try:
        shown = _without_this_file(traceback.TracebackException.from_exception(error))
        lines = "".join(shown.format())
    except BaseException:  # noqa: BLE001  formatting an exception may fail in any way
        return f"{type(error).__name__} (it cannot be shown)"
    return lines.rstrip()


def _without_this_file(shown: traceback.TracebackException) -> traceback.TracebackException:
    """The innermost frames of the agent's code, in the traceback and in its causes."""
    for part in (shown, shown.__cause__, shown.__context__):
        if part is not None:
            frames = [frame for frame in part.stack if frame.filename != __file__]
            part.stack = traceback.StackSummary.from_list(frames[-TRACEBACK_FRAMES:])
    return shown


def main() -> None:
    """Set the limits, report the isolation, and serve."""
    setting = json.loads(sys.argv[1])
    sys.argv = [""]
    sys.path += setting["paths"]
    limit(setting)
    close_memory()
    wire = Wire(take_socket(setting["socket"]), setting["most_bytes"])
    interpreter = Interpreter(wire, setting["shown_characters"])
    wire.send({"isolation": isolation()})
    interpreter.serve()


if __name__ == "__main__":
    main()
