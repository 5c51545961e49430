"""``make ui`` and ``make schedule``: the servers, in one process group that ends together.

    python -m flows.services ui         MLflow and Prefect, on loopback
    python -m flows.services schedule   the same, the deployments of infra/prefect.yaml, and a worker

Ports come from MLFLOW_PORT and PREFECT_PORT, the address from HOST, and the databases from
MLFLOW_TRACKING_URI and PREFECT_API_DATABASE_CONNECTION_URL: SQLite by default, or PostgreSQL. Prefect
requires a secret (``secret.py``). Ctrl-C (or SIGTERM) stops everything.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import psutil
from mlflow.exceptions import MlflowException

from flows import prefect_database, secret
from flows.children import stop
from flows.prefect_database import PREFECT_DATABASE
from skillpress.core.errors import UserError
from skillpress.core.http_clients import open_directly
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.core.web import is_loopback
from skillpress.pipeline import exit_codes
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.runs import check_database, create_database
from skillpress.rollouts.workers.ranks import exit_in_words

_LOG = logging.getLogger("skillpress.flows")

POOL = "local"
DRIVERS = ("sqlite+aiosqlite", "postgresql+asyncpg")
"""The database drivers that Prefect's server supports."""
START_SECONDS = 180.0
"""A server that does not answer within this time counts as failed."""
POLL_SECONDS = 0.5
OPEN = (
    "warning: HOST={host}: other machines can reach both servers, without encryption. MLflow asks for no "
    "password: whoever reaches port {mlflow} can read and change its records."
)


class ServiceError(UserError):
    """A service cannot start, or ended by itself; the message says which one and why."""


@dataclass(frozen=True)
class Address:
    """The address of a server."""

    name: str
    host: str
    port: int
    variable: str
    """The variable of make that sets the port."""

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def check_free(self) -> None:
        """Raise ``ServiceError`` if another program listens there already."""
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise ServiceError(
                    f"{self.name}: {self.host}:{self.port} cannot be used ({error.strerror}); "
                    f"stop what listens there, or choose another port: make ... {self.variable}=<port>"
                ) from error


class Services:
    """Started processes; leaving the block stops them, the last one first."""

    def __init__(self) -> None:
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Services:
        signal.signal(signal.SIGTERM, _interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave some of them running
        for _, process in reversed(self._started):
            if process.poll() is None:
                root = psutil.Process(process.pid)
                stop({root, *root.children(recursive=True)})

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program of this environment that the terminal's Ctrl-C does not reach."""
        program = [sys.executable, "-m", *command]
        self._started.append((name, subprocess.Popen(program, cwd=ROOT, start_new_session=True)))

    def wait_until(self, url: str, name: str) -> None:
        """Return when ``url`` answers.

        Raises:
            ServiceError: no answer within ``START_SECONDS``, or a process ended.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            try:
                with open_directly(url, 5):
                    return
            except (URLError, TimeoutError, ConnectionError):
                time.sleep(POLL_SECONDS)
        raise ServiceError(f"{name} does not answer at {url} after {START_SECONDS:.0f} s")

    def check(self) -> None:
        """Raise ``ServiceError`` if a process ended by itself."""
        for name, process in self._started:
            if process.poll() is not None:
                raise ServiceError(f"{name} ended unexpectedly with {exit_in_words(process.returncode)}")

    def run(self) -> None:
        """Wait until an interrupt, or until one of the processes ends."""
        while True:
            self.check()
            time.sleep(POLL_SECONDS)


def check_prefect_database() -> None:
    """Refuse a database that Prefect's server does not support."""
    uri = os.environ.get(PREFECT_DATABASE, f"{DRIVERS[0]}://")
    try:
        check_database(uri)
    except ValueError as error:
        raise ServiceError(f"{PREFECT_DATABASE} cannot be used: {error}") from None
    scheme = uri.partition("://")[0]
    if scheme not in DRIVERS:
        raise ServiceError(f"{PREFECT_DATABASE} begins with {scheme}://, not with {' or '.join(DRIVERS)}")


def tracking_experiment() -> str:
    """The id of MLflow's experiment; creates its database if it is missing."""
    try:
        return create_database()
    except MlflowException as error:
        raise ServiceError(str(error)) from error


def serve(services: Services, schedule: bool) -> None:
    """Start everything and wait.

    Raises:
        UserError: a port is taken, a database cannot be used, or a service failed.
    """
    host = os.environ.get("HOST", "127.0.0.1")
    mlflow, prefect = address("MLflow", host, 5000), address("Prefect", host, 4200)
    for each in (mlflow, prefect):
        each.check_free()
    check_prefect_database()
    experiment = tracking_experiment()
    prefect_database.create()
    os.environ |= {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_PORT": str(mlflow.port),
        "SKILLPRESS_ROOT": str(ROOT),
        "PREFECT_SERVER_API_HOST": host,
        "PREFECT_SERVER_API_PORT": str(prefect.port),
        "PREFECT_SERVER_UI_API_URL": "/api",  # relative: fits any name of the server
        "PREFECT_API_URL": f"{prefect.url}/api",
        secret.OF_CLIENT: os.environ[secret.OF_SERVER],
    }
    os.environ.setdefault("MLFLOW_SERVER_ALLOWED_HOSTS", ",".join(f"{name}:*" for name in names_of(host)))
    services.start("MLflow", ["flows.mlflow_server"])
    services.start("Prefect", ["flows.prefect_server"])
    services.wait_until(f"{prefect.url}/api/health", "Prefect")
    services.wait_until(f"{mlflow.url}/health", "MLflow")
    print(f"MLflow:  {mlflow.url}/#/experiments/{experiment}/runs\n{prefect_link(prefect)}", flush=True)
    if not is_loopback(host):
        _LOG.warning("%s", OPEN.format(host=host, mlflow=mlflow.port))
    if schedule:
        deploy()
        services.start("the worker", ["prefect", "worker", "start", "--pool", POOL])
        _LOG.info("deployments are scheduled; Ctrl-C stops the worker and the servers")
    services.run()


def address(name: str, host: str, port: int) -> Address:
    """The address at which a server should listen.

    Raises:
        ServiceError: its variable does not hold a port.
    """
    variable = f"{name.upper()}_PORT"
    given = os.environ.get(variable, str(port))
    if not (given.isascii() and given.isdigit() and 0 < int(given) < 65_536):
        raise ServiceError(f"{variable} is {given!r}, must be a port from 1 to 65535")
    return Address(name, host, int(given), variable)


def names_of(host: str) -> list[str]:
    """The names under which browsers may address a server that listens on ``host``. MLflow's own list has
    ``10.*``, but anyone can own a domain that begins like this."""
    names = ["localhost", "127.0.0.1", "0.0.0.0", "[[]::1]", host, socket.gethostname()]
    if not is_loopback(host):
        families = (socket.AF_INET, socket.AF_INET6)
        every = (each for addresses in psutil.net_if_addrs().values() for each in addresses)
        names += [each.address for each in every if each.family in families]
    return [f"[[]{name}]" if ":" in name and not name.startswith("[") else name for name in names]


def prefect_link(prefect: Address) -> str:
    """The line with the address of Prefect's pages; its link logs a browser in."""
    if secret.made_here:
        return f"Prefect: {prefect.url}/open#{os.environ[secret.OF_SERVER]}"
    return f"Prefect: {prefect.url} (it asks for what {secret.OF_SERVER} says)"


def deploy() -> None:
    """Create the work pool if it is missing, and deploy infra/prefect.yaml.

    Raises:
        ServiceError: Prefect refused; its message is in the output.
    """
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    inspect = [*prefect, "work-pool", "inspect", POOL]
    known = subprocess.run(inspect, cwd=ROOT, capture_output=True, check=False).returncode == 0
    commands = [["deploy", "--all", "--prefect-file", str(Path("infra") / "prefect.yaml")]]
    if not known:
        commands.insert(0, ["work-pool", "create", POOL, "--type", "process"])
    for command in commands:
        if subprocess.run([*prefect, *command], cwd=ROOT, check=False).returncode:
            raise ServiceError(f"prefect {' '.join(command)} failed")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit code."""
    if list(arguments) not in (["ui"], ["schedule"]):
        exit_codes.say(__doc__)
        return exit_codes.USER_ERROR
    try:
        with Services() as services:
            serve(services, schedule=arguments[0] == "schedule")
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    except KeyboardInterrupt:
        _LOG.info("stopped")
    return 0


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    sys.exit(main(sys.argv[1:]))
