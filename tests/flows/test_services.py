"""``make ui`` and ``make schedule``: the cases that are distinguished before anything starts."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import httpx
import pytest
from mlflow import MlflowClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from flows.secret import OF_CLIENT, OF_SERVER
from tests.support.clone import Clone
from tests.support.postgresql import cluster

STAGES = dict.fromkeys(
    (
        "prepare_tasks",
        "prepare_policy",
        "collect_rollouts",
        "filter_tasks",
        "project_skills",
        "fit_dictionary",
        "train_policy",
        "play_floors",
        "evaluate_policy",
        "report",
    ),
    "FINISHED",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("taken", ["MLFLOW_PORT", "PREFECT_PORT"])
def test_a_port_in_use_is_one_clear_message_and_nothing_is_started(taken: str, repository: Path) -> None:
    ports = {name: str(free_port()) for name in ("MLFLOW_PORT", "PREFECT_PORT")}
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ports[taken] = str(other.getsockname()[1])
        ui = subprocess.run(
            [sys.executable, "-m", "flows.services", "ui"],
            cwd=repository, env=os.environ | ports, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert ui.returncode == 2
    assert ui.stdout == ""
    (message,) = ui.stderr.strip().splitlines()
    assert f"127.0.0.1:{ports[taken]} cannot be used (Address already in use)" in message
    assert f"{taken}=<port>" in message


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "PREFECT_API_DATABASE_CONNECTION_URL",
            "postgresql://user:secret@127.0.0.1/prefect",
            "begins with postgresql://, not with sqlite+aiosqlite or postgresql+asyncpg",
        ),
        (
            "PREFECT_API_DATABASE_CONNECTION_URL",
            "postgresql+asyncpg:/user:secret@127.0.0.1/prefect",
            "it must be an address such as postgresql://user:password@host/name",
        ),
        (
            "MLFLOW_TRACKING_URI",
            "postgresql+pg8000://user:secret@127.0.0.1/mlflow",
            "the driver of postgresql+pg8000, pg8000, is not installed",
        ),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_message_without_its_password(
    variable: str, value: str, message: str, repository: Path
) -> None:
    ports = {name: str(free_port()) for name in ("MLFLOW_PORT", "PREFECT_PORT")}
    ui = subprocess.run(
        [sys.executable, "-m", "flows.services", "ui"],
        cwd=repository, env=os.environ | ports | {variable: value},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ui.returncode == 2
    (line,) = ui.stderr.strip().splitlines()
    assert variable in line and message in line
    assert "secret" not in line


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_a_schedule_really_runs_and_everything_ends_with_it(reproduced: Clone, tmp_path: Path) -> None:
    """The stages that a changed parameter reruns in an experiment that was reproduced before."""
    clone = reproduced.copied(tmp_path)
    shutil.rmtree(clone.folder / "mlruns")
    clone.set_params({"evaluation": {"runs": 1}})
    run_schedule(clone, tmp_path / "services.log")
    assert (clone.folder / ".prefect" / "prefect.db").exists()
    uri = f"sqlite:///{clone.folder}/mlruns/mlflow.db"
    assert recorded_stages(uri) == dict.fromkeys(("play_floors", "evaluate_policy", "report"), "FINISHED")


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.timeout(1000)
def test_on_postgresql_it_runs_as_well_and_nothing_is_left_to_sqlite(
    repository: Path, tmp_path: Path
) -> None:
    clone = Clone(repository, tmp_path)
    with cluster() as postgresql:
        uri = f"postgresql://{postgresql.create('mlflow')}"
        clone.environment |= {
            "MLFLOW_TRACKING_URI": uri,
            "PREFECT_API_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{postgresql.create('prefect')}",
        }
        create_at_once(clone)
        run_schedule(clone, tmp_path / "services.log")
        assert recorded_stages(uri) == STAGES
        flow_runs = "SELECT count(*) FROM flow_run WHERE state_type = 'COMPLETED' AND auto_scheduled"
        assert int(postgresql.query("prefect", flow_runs)[0]) >= 1
    reports = (clone.folder / "mlruns" / "skillpress").glob("*/artifacts/report.html")
    assert len(list(reports)) == 2  # of the stage and of the experiment
    assert not (clone.folder / ".prefect" / "prefect.db").exists()
    assert not (clone.folder / "mlruns" / "mlflow.db").exists()


def create_at_once(clone: Clone) -> None:
    """Processes that create MLflow's database at the same time; the second one must not fail."""
    both = [clone.start("skillpress.pipeline.tracking", output=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]


def recorded_stages(uri: str) -> dict[str, str]:
    """Each stage with a run in MLflow, and how that run ended."""
    client = MlflowClient(uri)
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    runs = client.search_runs([experiment.experiment_id], "tags.level = 'stage'")
    return {run.data.tags["dvc.stage"]: run.info.status for run in runs}


def run_schedule(clone: Clone, log: Path) -> None:
    """The default experiment as a deployment that is due every ten seconds, until a run has ended."""
    deployments = clone.folder / "infra" / "prefect.yaml"
    deployments.write_text(deployments.read_text().replace('cron: "0 2 * * *"', "interval: 10"))
    mlflow, prefect = free_port(), free_port()
    clone.environment |= {"MLFLOW_PORT": str(mlflow), "PREFECT_PORT": str(prefect)}
    for name in (OF_SERVER, OF_CLIENT):  # as this process has made them up for servers of its own
        clone.environment.pop(name, None)
    with log.open("w") as output:
        services = clone.start("flows.services", "schedule", output=output)
    try:
        deadline = time.monotonic() + 800
        while not has_completed(log):
            assert services.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "no scheduled run has finished: " + log.read_text()
            time.sleep(1)
        assert (clone.folder / "results" / "report.html").exists()
        link = re.search(r"Prefect: (http://\S+)/open#(\S+)", log.read_text())
        assert link is not None
        assert_no_web_page_commands_prefect(link[1], link[2])
        assert_no_web_page_reaches_mlflow(f"http://127.0.0.1:{mlflow}")
        for port in (mlflow, prefect):
            with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
                assert page.status == 200
    finally:
        os.killpg(services.pid, signal.SIGINT)
        services.wait(timeout=120)
    assert services.returncode == 0, log.read_text()
    assert "database is locked" not in log.read_text()
    for port in (mlflow, prefect):
        with pytest.raises(OSError, match="refused"), urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            pass


def assert_no_web_page_commands_prefect(url: str, secret: str) -> None:
    """Requests like those from pages of other origins and from other users of this machine; then the user's
    own."""
    knows = {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"}
    typed = {"Content-Type": "application/json"}
    foreign = {"Origin": "http://evil.example"}
    rebound = {"Host": "evil.example", "Origin": "http://evil.example"}
    with httpx.Client(base_url=f"{url}/api", trust_env=False, timeout=60) as http:

        def plant(headers: Mapping[str, str]) -> int:
            return http.post("/flows/", headers=headers, content='{"name": "planted"}').status_code

        for page in (foreign, rebound, {"Host": "evil.example"}, {"Origin": "null"}):
            for kind in ({}, {"Content-Type": "text/plain"}, typed):
                assert {plant(page | kind), plant(page | kind | knows)} == {403}
            for path in ("/csrf-token?client=page", "/admin/settings", "/events/out"):
                assert http.get(path, headers=page | knows).status_code == 403
            asked = http.options("/flows/", headers=page | {"Access-Control-Request-Method": "POST"})
            assert "access-control-allow-origin" not in asked.headers
        assert plant(typed) == plant(typed | knows) == 403, "a token is needed"
        assert http.get("/csrf-token?client=other").status_code == 401, "and for that the secret"
        token = http.get("/csrf-token?client=mine", headers=knows).json()["token"]
        mine = knows | {"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "mine"}
        assert plant(mine | typed | {"Authorization": "Basic d3Jvbmc="}) == 401

        def planted() -> bool:
            found = http.post("/flows/filter", headers=mine, json={}).json()
            return "planted" in [flow["name"] for flow in found]

        assert not planted()
        assert plant(mine | typed | {"Origin": url}) == 201 and planted(), "its own page may"
    socket_url = f"{url.replace('http', 'ws')}/api/events/in"
    with pytest.raises(InvalidStatus, match="403"):
        connect(socket_url, proxy=None, origin=Origin("http://evil.example"))


def assert_no_web_page_reaches_mlflow(url: str) -> None:
    """Whether a page is foreign by its origin, or by a name that it gave to this machine."""
    foreign = [
        {"Origin": page}
        for page in ("http://evil.example", "http://localhost:1", "http://127.0.0.1:1", "null")
    ]
    for headers in (*foreign, {"Host": "evil.example"}, {"Host": "10.evil.example"}):
        with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
            searched = http.post("/api/2.0/mlflow/experiments/search", json={"max_results": 1})
            assert searched.status_code == 403
    with httpx.Client(base_url=url, headers={"Origin": url}, trust_env=False, timeout=60) as http:
        for kind in ("api", "ajax-api"):
            create = f"/{kind}/2.0/mlflow/experiments/create"
            for place in ("/etc", "file:///etc", "mlruns/../../elsewhere"):
                refused = http.post(create, json={"name": kind, "artifact_location": place})
                assert refused.status_code == 400 and "where artifacts are kept" in refused.text
            assert http.post(create, json={"name": f"own {kind}"}).status_code == 200


def has_completed(log: Path) -> bool:
    """Whether a flow run has this; lines about task runs say it for each stage."""
    return any(
        "Flow run '" in line and "Finished in state Completed" in line
        for line in log.read_text().splitlines()
    )
