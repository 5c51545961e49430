"""The Prefect server of one ``make run``, on the file in ``PREFECT_HOME``.

    python -m flows.own_server DESCRIPTOR       what ``OwnServer`` starts

It starts while the run still imports DVC, MLflow and Prefect: on two cores neither waits long for the other.
The run opens the port and the server inherits it, so no other program can use the port in between. The server
ends with the run, ``kill -9`` included.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import URLError

from flows import prefect_database, secret
from flows.prefect_database import SECONDS
from skillpress.core.errors import UserError
from skillpress.core.http_clients import open_directly
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.settings import ROOT
from skillpress.rollouts.workers.ranks import exit_in_words

END_SECONDS = 5.0
"""A server that has not ended by itself by then is killed; SQLite keeps all that was written."""
_LIGHT = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "0",
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "0",
}
"""Prefect's settings for a server of one flow: no pages, no scheduler, no kinds of blocks."""


class OwnServerError(UserError):
    """The server of this run does not answer; the message says why."""


_started: list[OwnServer] = []
"""The server of this process, if it has started one."""


def end_if_it_is_gone() -> None:
    """End this process with one line if the server that it started has ended: no state could be kept."""
    for server in _started:
        try:
            server.check()
        except OwnServerError as error:
            exit_codes.say(error)
            exit_codes.leave(exit_codes.RETRY)


class OwnServer:
    """A server that has been started. Make it before Prefect is imported, which reads the address then."""

    def __init__(self) -> None:
        parent.name_this_process()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self._url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
            descriptor = listening.fileno()
            # In a session of its own, it still answers while Ctrl-C ends the stages.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "flows.own_server", str(descriptor)],
                cwd=ROOT, env=os.environ | _LIGHT, pass_fds=[descriptor], start_new_session=True,
            )  # fmt: skip
        secret.use_own_server(self._url)
        _started.append(self)
        atexit.register(self._stop)  # Prefect, imported later, sends its last events before

    def wait_until_ready(self) -> None:
        """Return when it answers.

        Raises:
            OwnServerError: it has ended, or does not answer in time.
        """
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            self.check()
            try:
                with open_directly(f"{self._url}/health", 5):
                    return
            except (URLError, TimeoutError, ConnectionError):
                time.sleep(0.1)
        raise OwnServerError(
            f"{self._url}: Prefect's server of this run does not answer after {SECONDS:g} seconds; start "
            "again when the machine is less busy"
        )

    def check(self) -> None:
        """Raise ``OwnServerError`` if it has ended."""
        if (code := self._process.poll()) is not None:
            raise OwnServerError(
                f"{self._url}: Prefect's server of this run has ended with {exit_in_words(code)}; finished "
                "stages and checkpoints are kept, run the same command again to go on"
            )

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(descriptor: int) -> int:
    """Serve on this open port until SIGTERM, or until the run has ended; returns the exit code."""
    parent.end_with_named_process()
    with ThreadPoolExecutor(1) as beside, socket.socket(fileno=descriptor) as listening:
        made = beside.submit(prefect_database.create)
        from flows.prefect_server import serve  # in seconds

        try:
            made.result()
        except UserError as error:
            exit_codes.say(error)
            return exit_codes.USER_ERROR
        serve([listening])
    return 0


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    sys.exit(main(int(sys.argv[1])))
