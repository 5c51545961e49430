"""Commands that a process with imported libraries forks, so that they need not import these.

A stage of a small experiment computes for a second or two and imports torch, transformers, DeepSpeed and
MLflow for ten. A study of hundreds of such runs therefore starts one process that imports them once
(``nursery_server.py``) and names it in the environment (:data:`VARIABLE`). A command of this project asks it
(:func:`forked`) for a child that runs in its place, in the same folder, with the same environment, open files
and code, and waits for the child's exit code. Where the variable is not set, or nothing answers, the command
runs in its own process.

``python -m skillpress.pipeline.nursery MODULE ARGUMENTS`` is such a command for any module.

The child ends when the command ends, so whatever stops a command, ``kill -9`` included, stops its child too.
"""

from __future__ import annotations

import json
import logging
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from skillpress.pipeline import nursery_server
from skillpress.pipeline.nursery_server import FORKED, HEADER, INTERRUPT

_LOG = logging.getLogger(__name__)

VARIABLE = "SKILLPRESS_NURSERY"
"""The socket of the process that forks."""
LIBRARIES = (
    "numpy", "polars", "pydantic", "psutil", "yaml", "tqdm", "gymnasium", "numba", "scipy.special",
    "torch", "transformers", "transformers.models.llama.modeling_llama",
    "deepspeed", "deepspeed.runtime.zero.stage3", "deepspeed.runtime.zero.stage_1_and_2",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "sqlalchemy", "mlflow", "mlflow.transformers", "dvc.cli", "dvc.repo", "networkx", "voluptuous",
)  # fmt: skip
"""What stages and the processes beside them import."""
LOST = 1
"""The exit code of a command whose child ended together with the process that forked it."""
END_SECONDS = 60.0
"""How long the process that forks may take to end; its imports take a quarter of that on a busy machine."""
DEVICES = Path("/dev")
"""Where the kernel shows GPUs. A process that has looked at them must not fork."""


@contextmanager
def nursery(libraries: Sequence[str] = LIBRARIES) -> Iterator[bool]:
    """Commands that are started in the block are forked; yields whether they are.

    Not on machines with an NVIDIA GPU, nor on systems other than Linux, where commands run as ever.
    """
    if sys.platform != "linux" or any(DEVICES.glob("nvidia[0-9]*")):
        yield False
        return
    with (
        tempfile.TemporaryDirectory(prefix="skillpress-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        place = str(Path(folder) / "nursery")
        listener.bind(place)
        listener.listen(64)
        command = [sys.executable, "-P", str(nursery_server.__file__), *libraries]
        # It imports DeepSpeed without a GPU, of which DeepSpeed shall not warn.
        environment = {**os.environ, "DS_ACCELERATOR": "cpu"}
        server = subprocess.Popen(
            command, stdin=listener.fileno(), stdout=subprocess.PIPE, env=environment
        )  # the server ends when this end of the pipe is closed
        os.environ[VARIABLE] = place
        try:
            yield True
        finally:
            del os.environ[VARIABLE]
            _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Close the pipe at whose end the server ends; kill it if it does not."""
    assert server.stdout is not None
    server.stdout.close()
    try:
        server.wait(END_SECONDS)
    except subprocess.TimeoutExpired:  # an import hangs; only afterwards does it look at the pipe
        server.kill()
        server.wait(END_SECONDS)


def command(module: str, *arguments: str) -> list[str]:
    """What starts a module of this project: forked where the environment names a process that forks."""
    through = ["skillpress.pipeline.nursery"] if os.environ.get(VARIABLE) else []
    return [sys.executable, "-m", *through, module, *arguments]


def forked(module: str, arguments: Sequence[str]) -> int | None:
    """The exit code of ``python -m module arguments``, run by a forked process; None if none can be had.

    Call it where that module itself has been started, after ``parent.end_with_named_process()``.
    """
    place = os.environ.get(VARIABLE)
    if not place or os.environ.get(FORKED) == str(os.getpid()):
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(place)
    except OSError:  # the study has ended, or this is another machine
        connection.close()
        return None
    order = {
        "module": module,
        "arguments": list(arguments),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    with connection:
        text = json.dumps(order).encode()
        socket.send_fds(connection, [HEADER.pack(len(text))], [0, 1, 2])
        connection.sendall(text)
        return _code(connection)


def _code(connection: socket.socket) -> int:
    """Wait for the child's exit code; Ctrl-C is passed on to it."""
    answer = b""
    while not answer.endswith(b"\n"):
        try:
            part = connection.recv(64)
        except KeyboardInterrupt:
            with suppress(OSError):
                connection.sendall(INTERRUPT)
            continue
        if not part:
            _LOG.error("the process that forks commands has ended, and this one's child too")
            return LOST
        answer += part
    code = int(answer)
    return code if code >= 0 else 128 - code


def main(arguments: Sequence[str]) -> int:
    """Run a module, in a forked process if there can be one; returns its exit code."""
    module, *others = arguments
    code = forked(module, others)
    if code is not None:
        return code
    sys.argv = [module, *others]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
