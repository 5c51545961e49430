"""Places of artifacts that MLflow's server is asked for stay below the lab's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from flows.mlflow_server import ArtifactsBelow, artifact_root


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body, as the application behind the guard sees it."""
    await PlainTextResponse(await Request(scope, receive).body())(scope, receive, send)


@pytest.mark.parametrize(
    "path", ["/api/2.0/mlflow/experiments/create", "/ajax-api/2.0/mlflow/experiments/create/"]
)
@pytest.mark.parametrize(
    ("place", "passes"),
    [
        ("/etc", False), ("file:///etc", False), ("file:///etc%2Fcron.d", False), ("../x", False),
        ("ROOT/a", True), ("file://ROOT/a", True), ("ROOT/../x", False), ("file://ROOT/%2E%2E/x", False),
        ("s3://bucket/x", True), ("mlflow-artifacts:/1", True), ("", True),
    ],
)  # fmt: skip
def test_a_local_place_is_below_the_root(path: str, place: str, passes: bool, tmp_path: Path) -> None:
    root = tmp_path / "mlruns"
    client = TestClient(ArtifactsBelow(echo, root))
    body = {"name": "a", "artifact_location": place.replace("ROOT", str(root))}
    answer = client.post(path, json=body)
    assert answer.status_code == (200 if passes else 400)
    assert answer.json() == body if passes else "where artifacts are kept" in answer.json()["message"]


def test_other_requests_pass_unread(tmp_path: Path) -> None:
    client = TestClient(ArtifactsBelow(echo, tmp_path))
    assert client.post("/api/2.0/mlflow/runs/log-metric", content=b"\xff").content == b"\xff"
    assert client.post("/api/2.0/mlflow/experiments/create", content=b"[1]").content == b"[1]"
    assert client.post("/api/2.0/mlflow/experiments/create", content=b"x" * (2 << 20)).status_code == 400


def test_artifacts_lie_beside_an_sqlite_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", "/kept")
    assert artifact_root("sqlite:////lab/mlruns/mlflow.db") == Path("/lab/mlruns")
    assert artifact_root("postgresql://host/mlflow") == Path("/kept")
