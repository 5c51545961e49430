"""A Ray cluster of several nodes on this machine, protected by a token, for tests.

Its nodes belong to a separate process (this file as a program): Ray reads its variables when it is imported,
and leaves handlers behind. That process reads one line (JSON) for each node to start, answers with the node's
process, and ends the cluster when its input is closed.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from skillpress.rollouts.workers.ranks import free_port

STORE_BYTES = 100_000_000
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 10_000,  # a busy node is slow to answer; a dead one refuses at once
    "health_check_failure_threshold": 3,
}


class SimulatedCluster:
    """A head that runs no work, and nodes of one core each."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        """``environment`` is the environment of all processes of the cluster."""
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        access = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
        patience = {"RAY_raylet_start_wait_time_s": "120"}  # on a busy machine Ray's 30 s are not enough
        self.environment = {**environment, **access, **patience}
        """Variables that drivers need too."""
        self._nodes: dict[str, int] = {}
        self._program = subprocess.Popen(
            [sys.executable, __file__],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.address = self._answer()

    def add(self, name: str, **variables: str) -> None:
        """Add a node; ``variables`` apply only to it."""
        assert self._program.stdin is not None
        print(json.dumps({"name": name, "variables": variables}), file=self._program.stdin, flush=True)
        self._nodes[name] = int(self._answer())

    def kill(self, name: str, whole: bool = False) -> None:
        """Send SIGKILL to the node's process. Its child processes must notice it themselves, or are killed
        too (``whole``)."""
        node = psutil.Process(self._nodes.pop(name))
        below = node.children(recursive=True) if whole else []
        node.kill()
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def node_above(self, process: psutil.Process) -> str:
        """The name of the node that a process runs on."""
        above = {parent.pid for parent in process.parents()}
        (name,) = (name for name, node in self._nodes.items() if node in above)
        return name

    def shut_down(self) -> None:
        """End every node."""
        self._program.communicate(timeout=120)

    def _answer(self) -> str:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            if line.startswith("cluster: "):
                return line.removeprefix("cluster: ").strip()
        raise AssertionError(f"the cluster ended with exit code {self._program.wait()}")


def process_of_rank(rank: int, folder: Path) -> psutil.Process:
    """The process of a rank of the gang whose work is below the folder."""
    (found,) = (
        process
        for process in psutil.process_iter(["cmdline", "environ"])
        if "skillpress.rollouts.workers.gang_rank" in (command := process.info["cmdline"] or [])
        and any(word.startswith(f"{folder}/") for word in command)
        and process.info["environ"]["RANK"] == str(rank)
    )
    return found


def agents() -> dict[str, int]:
    """Ports of a node's helpers. Otherwise the node would wait until they have chosen them and end itself
    after 15 seconds, which is too short on a busy machine."""
    names = (
        "dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port", "runtime_env_agent_port",
    )  # fmt: skip
    return {name: free_port() for name in names}


def main() -> None:
    """The cluster's process."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "_system_config": QUICK_TO_NOTICE}
    without = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    cluster = Cluster(initialize_head=True, head_node_args={**head, **without, **agents()})
    print(f"cluster: {cluster.address}", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        node = cluster.add_node(
            num_cpus=1,
            object_store_memory=STORE_BYTES,
            node_name=wanted["name"],
            env_vars=wanted["variables"],
            **agents(),
        )
        (raylet,) = node.all_processes["raylet"]
        print(f"cluster: {raylet.process.pid}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
