"""How clients reach servers: proxies, exceptions, certificates, and which variable an error names."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request

import certifi
import httpx
import pytest

from skillpress.core.errors import UserError
from skillpress.core.http_clients import (
    async_client,
    check_variables,
    direct_to,
    is_this_machine,
    loopback_kept_direct,
    open_directly,
    route_to,
)

FAR = "http://model.example.com/v1"
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy", "socks_proxy")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of this machine has a say."""
    for name in (*NAMES, *map(str.upper, NAMES), "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def answering() -> Iterator[tuple[int, list[str]]]:
    """A server that answers its port's number: (the port, the paths that it was asked for)."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(self.server.server_port).encode())  # type: ignore[attr-defined]

        def log_message(self, *said: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def get(url: str) -> str:
    async def ask() -> str:
        async with async_client(route_to(url), {}) as client:
            return (await client.get(url)).text

    return asyncio.run(ask())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_this_machine_is_reached_through_no_proxy(
    host: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering() as (server, asked), answering() as (proxy, through):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy}")
        assert get(f"http://{host}:{server}/here") == str(server)
        with open_directly(Request(f"http://{host}:{server}/there"), 10) as answer:
            assert answer.read() == str(server).encode()
    assert asked == ["/here", "/there"] and not through


@pytest.mark.parametrize("value", ["http://127.0.0.1:{}", "127.0.0.1:{}"])
def test_another_machine_is_reached_through_the_proxy_that_is_named(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering() as (proxy, through):
        monkeypatch.setenv("HTTP_PROXY", value.format(proxy))
        assert get(f"{FAR}/models") == str(proxy)
    assert through == [f"{FAR}/models"]
    assert route_to(FAR).told == " (through the proxy that HTTP_PROXY names)"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1080"),
        ("all_proxy", "socks://127.0.0.1:1080/"),
        ("HTTP_PROXY", "socks5h://127.0.0.1:1080"),
        ("HTTP_PROXY", "http://proxy:notaport"),
        ("HTTP_PROXY", "http://"),
        ("http_proxy", "ftp://proxy:21"),
        ("HTTP_PROXY", "http://[::1"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable_where_it_concerns_the_server(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match=f"^{variable}: .*NO_PROXY") as refused:
        route_to(FAR)
    assert "\n" not in str(refused.value)
    assert route_to("http://localhost:8000").proxy is None
    with pytest.raises(UserError, match=f"^{variable}: "):
        check_variables()
    monkeypatch.setenv("NO_PROXY", "model.example.com")
    assert route_to(FAR).proxy is None, "it does not concern this server"


def test_a_proxys_password_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@127.0.0.1:1080")
    with pytest.raises(UserError) as refused:
        route_to(FAR)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("exceptions", "url", "excepted"),
    [
        ("[::1],fe80::/10", FAR, False),
        ("[fd00::1]", "http://[fd00::1]:80/", True),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("[fd00::1]:81", "http://[fd00::1]:80/", False),
        ("10.0.0.0/8", "http://10.1.2.3:8000", True),
        ("10.0.0.0/8", "http://11.1.2.3:8000", False),
        ("10.1.2.3", "http://10.1.2.3", True),
        ("example.com", FAR, True),
        (".example.com", FAR, True),
        ("*.example.com", FAR, True),
        ("ample.com", FAR, False),
        ("MODEL.example.COM.", FAR, True),
        ("other, model.example.com", FAR, True),
        ("other model.example.com", FAR, True),
        ("model.example.com:80", "http://model.example.com:80/v1", True),
        ("model.example.com:81", "http://model.example.com:80/v1", False),
        ("http://model.example.com", FAR, True),
        ("*", FAR, True),
        ("", FAR, False),
    ],
)
def test_exceptions_are_names_domains_addresses_and_networks(
    exceptions: str, url: str, excepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert (route_to(url).proxy is None) == excepted


def test_the_scheme_chooses_the_variable_and_lower_case_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://plain:1")
    monkeypatch.setenv("ALL_PROXY", "http://all:2")
    assert route_to(FAR).proxy == "http://plain:1"
    assert route_to("https://model.example.com").proxy == "http://all:2"
    monkeypatch.setenv("https_proxy", "http://lower:3")
    assert route_to("wss://model.example.com").proxy == "http://lower:3"
    monkeypatch.setenv("https_proxy", "")
    assert route_to("https://model.example.com").proxy == "http://all:2"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("LocalHost.", True), ("a.localhost", True), ("127.8.9.1", True), ("::1", True),
        ("::ffff:127.0.0.1", True), ("0.0.0.0", True), ("::", True), ("127.1", True), ("2130706433", True),
        ("localhost.example.com", False), ("10.0.0.1", False), ("fe80::1%eth0", False), ("", False),
        ("127.example.com", False),
    ],
)  # fmt: skip
def test_which_hosts_are_this_machine(host: str, here: bool) -> None:
    assert is_this_machine(host) == here


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"])
def test_a_variable_of_certificates_that_points_nowhere_is_named_where_certificates_are_needed(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "gone" / "file"))
    with pytest.raises(UserError, match=f"^{variable}: .*gone.*unset the variable") as refused:
        route_to("https://model.example.com")
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=f"^{variable}: "):
        direct_to(["http://one", "https://two"])
    with answering() as (server, _):
        assert get(f"http://127.0.0.1:{server}") == str(server)
    direct_to(["http://one"])


def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "empty.pem"))
    with pytest.raises(UserError, match=r"^SSL_CERT_FILE: .*empty\.pem is not a file with certificates"):
        route_to("https://model.example.com")


def test_certificates_are_those_that_the_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    assert route_to("https://model.example.com").certificates.get_ca_certs()
    assert not route_to("http://model.example.com").certificates.get_ca_certs()


def test_other_programs_get_exceptions_that_their_clients_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loopback_kept_direct({}) == {}
    given = {"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "[::1],fe80::/10,10.0.0.0/8,[fd00::2]:80,.lan"}
    found = loopback_kept_direct(given)
    assert found["NO_PROXY"] == found["no_proxy"] == "::1,10.0.0.0/8,fd00::2,lan,localhost,127.0.0.1"
    assert loopback_kept_direct({"NO_PROXY": "a,*"})["NO_PROXY"] == "*"
    for name, value in (given | found).items():
        monkeypatch.setenv(name, value)
    with answering() as (server, asked):
        assert httpx.get(f"http://localhost:{server}/direct").text == str(server)
    assert asked == ["/direct"]
