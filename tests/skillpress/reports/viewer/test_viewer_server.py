"""The server's answers, and the requests that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from skillpress.core.errors import UserError
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.query import parse
from skillpress.reports.viewer.server import HEADERS, application, listen

PORT = 8765
HOST = f"127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def client(catalogue: RolloutCatalogue) -> TestClient:
    return TestClient(application(catalogue, PORT), base_url=f"http://{HOST}")


ANSWERS: dict[str, Callable[[RolloutCatalogue], Any]] = {
    "/api/health": lambda catalogue: {"ok": True},
    "/api/about": lambda catalogue: catalogue.about(),
    "/api/episodes": lambda catalogue: catalogue.page(parse([])),
    "/api/episodes?won=0&sort=steps&limit=3": lambda catalogue: catalogue.page(
        parse([("won", "0"), ("sort", "steps"), ("limit", "3")])
    ),
    "/api/episode/0-7": lambda catalogue: catalogue.episode("0-7"),
    "/api/episode/1-3": lambda catalogue: catalogue.episode("1-3"),
    "/api/episode/0-7/prompt/0": lambda catalogue: catalogue.prompt("0-7", 0),
    "/api/dictionary": lambda catalogue: catalogue.dictionary(),
}


@pytest.mark.parametrize("path", ANSWERS)
def test_answers_are_the_catalogues_records(
    path: str, client: TestClient, catalogue: RolloutCatalogue
) -> None:
    told = client.get(path)
    assert told.status_code == 200 and told.headers["content-type"] == "application/json"
    assert told.json() == orjson.loads(orjson.dumps(ANSWERS[path](catalogue)))


def test_the_page_is_at_the_root(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200 and page.text.startswith("<!doctype html>")


@pytest.mark.parametrize("path", ["/", "/api/health", "/api/episodes?limit=x", "/nothing"])
def test_every_answer_has_the_headers_that_protect_it(path: str, client: TestClient) -> None:
    told = client.get(path)
    assert {name: told.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "[::1]:8765", ""]
)
def test_another_host_is_refused(host: str, client: TestClient) -> None:
    for path in ("/", "/api/episodes", "/nothing"):
        refused = client.get(path, headers={"Host": host})
        assert (refused.status_code, list(refused.json())) == (403, ["error"])


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:1"])
def test_another_origin_is_refused(origin: str, client: TestClient) -> None:
    assert client.get("/api/episodes", headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}"])
def test_its_own_pages_are_answered(host: str, client: TestClient) -> None:
    assert client.get("/api/health", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_but_get_is_answered(method: str, client: TestClient) -> None:
    assert client.request(method, "/api/episodes").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/page/app.js", "/../pyproject.toml", "/%2e%2e/pyproject.toml", "/api/episode/..%2f..%2fetc", "/api/",
     "/api/episode/0-9999", "/api/episode/9-0", "/api/episode/-1-0", "/api/episode/0", "/api/episode/0-x",
     "/api/episode/0-7/prompt/99", "/api/episode/0-7/prompt/-1", "/docs", "/openapi.json"],
)  # fmt: skip
def test_there_is_nothing_else(path: str, client: TestClient) -> None:
    assert client.get(path).status_code == 404


def test_a_bad_parameter_is_named(client: TestClient) -> None:
    refused = client.get("/api/episodes?limit=many")
    assert refused.status_code == 400
    assert refused.json() == {"error": "limit: 'many' is not a whole number from 0 on"}


def test_a_port_that_is_taken_is_refused_by_its_number() -> None:
    taken = listen(0)
    port = taken.getsockname()[1]
    with pytest.raises(UserError, match=f"--port: {port} cannot be used"):
        listen(port)
    taken.close()
    again = listen(port)
    again.close()


def test_it_listens_on_loopback_alone() -> None:
    opened = listen(None)
    assert opened.getsockname()[0] == "127.0.0.1"
    opened.close()
