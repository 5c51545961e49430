"""Programs and the server's own pages get answers, foreign pages do not, over HTTP and WebSockets."""

from __future__ import annotations

import socket
from typing import Literal

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from skillpress.core.web import PageGuard, is_loopback

HOST = "127.0.0.1:4200"


def client(pages: Literal["none", "own"], port: int | None = None, url: str = f"http://{HOST}") -> TestClient:
    """A client of an application behind the guard, at an address of this machine."""

    def answer(request: Request) -> Response:
        return Response("answered")

    async def talk(connection: WebSocket) -> None:
        await connection.accept()
        await connection.send_text("answered")
        await connection.close()

    routes = [Route("/", answer, methods=["GET", "POST", "OPTIONS"]), WebSocketRoute("/ws", talk)]
    return TestClient(PageGuard(Starlette(routes=routes), pages, port), base_url=url)


def answers(found: TestClient, **headers: str) -> bool:
    """Whether a request with these headers gets an answer; the same for every method and for a WebSocket."""
    statuses = {
        found.request(method, "/", headers=headers).status_code for method in ("GET", "POST", "OPTIONS")
    }
    try:
        with found.websocket_connect(f"ws{str(found.base_url)[4:]}/ws", headers=headers) as connection:
            said = {200: connection.receive_text() == "answered"}
    except WebSocketDisconnect as closed:
        said = {403: closed.code == 1008}
    assert statuses == set(said) and all(said.values())
    return statuses == {200}


@pytest.mark.parametrize("pages", ["none", "own"])
def test_programs_are_answered_under_every_name_of_loopback(pages: Literal["none", "own"]) -> None:
    for host in (
        HOST,
        "localhost:4200",
        "LOCALHOST:4200",
        "localhost",
        f"{socket.gethostname()}:4200",
        "0.0.0.0",
    ):
        assert answers(client(pages), Host=host)
    assert answers(client(pages), Host="localhost:9000"), "the other end of a tunnel"
    assert answers(client(pages, url="http://[::1]:4200"), Host="[::1]:4200")


@pytest.mark.parametrize("pages", ["none", "own"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4200", "127.0.0.1.evil.example", "localhost.evil.example:4200",
             "127.0.0.2:4200", "10.evil.example", "localhost:4200:4200", "localhost:x", "[::1]:4200", ""],
)  # fmt: skip
def test_a_name_that_was_made_to_lead_to_loopback_is_refused(
    pages: Literal["none", "own"], host: str
) -> None:
    assert not answers(client(pages), Host=host)
    assert not answers(client(pages), Host=host, Origin=f"http://{host}")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", f"https://{HOST}", HOST, "http://127.0.0.1",
               "http://127.0.0.1:9999", "http://localhost:4200", f"http://{HOST}.evil.example"],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert not answers(client("own"), Origin=origin)
    assert not answers(client("none"), Origin=origin)


def test_pages_of_its_own_are_answered_where_a_server_has_some() -> None:
    for host in (HOST, "localhost:4200", "localhost:9000"):
        assert answers(client("own"), Host=host, Origin=f"http://{host}")
        assert not answers(client("none"), Host=host, Origin=f"http://{host}")


def test_the_port_must_be_named_where_it_is_asked_for() -> None:
    assert answers(client("own", 4200), Host="localhost:4200")
    assert not answers(client("own", 4200), Host="localhost:4201")
    assert not answers(client("own", 4200), Host="localhost")
    assert answers(client("own", 80), Host="localhost")


def test_on_another_interface_any_name_will_do_and_foreign_pages_will_not() -> None:
    outside = client("own", url="http://192.0.2.7:4200")
    assert answers(outside, Host="this.machine.example:4200")
    assert answers(outside, Host="this.machine.example", Origin="http://this.machine.example")
    assert not answers(outside, Host="this.machine.example", Origin="http://evil.example")


def test_two_hosts_or_origins_are_refused() -> None:
    guarded = client("own")
    for name in ("Host", "Origin"):
        value = HOST if name == "Host" else f"http://{HOST}"
        assert guarded.get("/", headers=[(name, value), (name, value)]).status_code == 403


def test_a_server_without_settings_answers_programs_alone() -> None:
    """vLLM's server adds the guard like this: it calls the class with only the application."""
    guarded = TestClient(PageGuard(Response("answered")), base_url=f"http://{HOST}")
    assert guarded.post("/").text == "answered"
    assert guarded.post("/", headers={"Origin": f"http://{HOST}"}).status_code == 403
    assert guarded.post("/", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "private"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("::ffff:127.0.0.1", True),
     ("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.7", False), ("node0", False)],
)  # fmt: skip
def test_what_listens_for_this_machine_alone_is_known(host: str, private: bool) -> None:
    assert is_loopback(host) is private
