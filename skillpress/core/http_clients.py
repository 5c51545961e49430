"""Every HTTP client of this library: how it reaches its server, and whose certificates it trusts.

A client goes through a proxy only if the environment names one for its server (``HTTP_PROXY``,
``HTTPS_PROXY``, ``ALL_PROXY``, and ``NO_PROXY`` for exceptions). It reaches servers on this machine directly,
whatever these variables say. HTTP libraries read the same variables, and raise errors that name none of them
where a value cannot be used, even for servers that the variable does not concern. So clients get their route
from here, and variables are looked at only as far as they concern the server.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from skillpress.core.errors import UserError

if TYPE_CHECKING:
    import httpx

VARIABLES = {
    "http": ("http_proxy", "all_proxy"),
    "https": ("https_proxy", "all_proxy"),
    "ws": ("ws_proxy", "socks_proxy", "https_proxy", "http_proxy", "all_proxy"),
    "wss": ("wss_proxy", "socks_proxy", "https_proxy", "all_proxy"),
}
"""The variables that may name the proxy for a URL's scheme, in lower case; the first that is set counts."""
EXCEPTIONS = "no_proxy"
SOCKS = {"http": "socksio", "https": "socksio", "ws": "python_socks", "wss": "python_socks"}
"""The package that a client for this scheme needs in order to go through a SOCKS proxy."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for the ``NO_PROXY`` of other programs."""


@dataclass(frozen=True)
class Route:
    """How a client reaches one server."""

    proxy: str | None
    """The proxy's URL; None for a direct connection."""
    variable: str
    """The environment variable that names the proxy; empty for a direct connection."""
    certificates: ssl.SSLContext
    """The certificates that are trusted; empty if the connection needs none."""

    @property
    def told(self) -> str:
        """A remark for errors that names the proxy on the way to the server; empty without a proxy."""
        return f" (through the proxy that {self.variable} names)" if self.variable else ""


def route_to(url: str) -> Route:
    """The way to a server.

    Raises:
        UserError: a variable that concerns this server cannot be used; the message names it.
    """
    parts = urlsplit(url)
    variable, proxy = _proxy_for(parts)
    encrypted = parts.scheme in ("https", "wss") or (proxy or "").startswith("https:")
    return Route(proxy, variable, _certificates(encrypted))


def server_urls(urls: Iterable[str]) -> list[str]:
    """The addresses of servers as a parameter gives them, without a slash at the end.

    Raises:
        ValueError: an address is not a server's, holds a secret, or is named twice.
    """
    found = [url.rstrip("/") for url in urls]
    for url in found:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "holds a password, or a part behind '?' or '#', which would be recorded with the parameters"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path:
            raise ValueError(f"{url!r} is not a server; allowed: http://HOST:PORT")
    if len(set(found)) < len(found):
        raise ValueError("names a server twice")
    return found


def async_client(route: Route, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for any number of requests at once. It follows no redirects and has no time-outs."""
    import httpx  # imported here because it costs 0.1 s that most commands can avoid

    proxy = httpx.Proxy(route.proxy, ssl_context=_of_proxy(route)) if route.proxy else None
    return httpx.AsyncClient(
        headers=dict(headers),
        timeout=None,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
        trust_env=False,
        proxy=proxy,
        verify=route.certificates,
    )


def direct_to(urls: Iterable[str]) -> Route:
    """The way to servers of the same cluster. It uses no proxy, since that leads out of the cluster."""
    return Route(None, "", _certificates(any(url.startswith("https:") for url in urls)))


def open_directly(request: str | Request, seconds: float) -> Any:
    """Ask a server of this machine or cluster, through no proxy; returns a context manager.

    Raises:
        OSError: no answer within ``seconds``, or an error status.
    """
    return build_opener(ProxyHandler({})).open(request, timeout=seconds)


def trusted_certificates() -> ssl.SSLContext:
    """The certificates that ``SSL_CERT_FILE`` or ``SSL_CERT_DIR`` names, else those of the package certifi.

    Raises:
        UserError: a variable names a file or folder that cannot be used.
    """
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"SSL_CERT_FILE: {file} is not a file with certificates ({error.strerror or error}); unset "
                "the variable, or let it name one"
            ) from error
    elif folder and not any(Path(part).is_dir() for part in folder.split(os.pathsep)):
        raise UserError(f"SSL_CERT_DIR: {folder} is not a folder; unset the variable, or let it name one")
    try:
        if not file and folder:
            return ssl.create_default_context(capath=folder)
        return ssl.create_default_context(cafile=file or certifi.where())
    except OSError as error:
        raise UserError(
            f"SSLKEYLOGFILE: {os.environ.get('SSLKEYLOGFILE')} cannot be written "
            f"({error.strerror or error}); unset the variable, or let it name a file that can be"
        ) from error


def loopback_kept_direct(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables with which other programs reach servers of this machine through no proxy.

    Entries of ``NO_PROXY`` that stop widespread HTTP clients (``[::1]``, ``fe80::/10``) are rewritten or left
    out. Empty if no proxy is named.
    """
    if not any(name.lower().endswith("_proxy") and value for name, value in environment.items()):
        return {}
    names = [_bare(entry) for entry in _exceptions(environment)]
    usable = [name for name in names if not (":" in name and "/" in name)]
    listed = "*" if "*" in names else ",".join(dict.fromkeys([*usable, *LOOPBACK]))
    return {EXCEPTIONS: listed, EXCEPTIONS.upper(): listed}


def check_variables() -> None:
    """Refuse variables that stop the HTTP clients of other libraries, whatever server these ask.

    Raises:
        UserError: a proxy or a file of certificates cannot be used; the message names the variable.
    """
    for lower in ("http_proxy", "https_proxy", "all_proxy"):
        name, value = _variable(lower, os.environ)
        if value:
            _usable(name, value, urlsplit("https:"))
    trusted_certificates()


def is_this_machine(host: str) -> bool:
    """Whether a client that connects to this host always reaches this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address is not None and (address.is_loopback or address.is_unspecified)


def _certificates(needed: bool) -> ssl.SSLContext:
    """The trusted certificates if they are needed, else an empty context, which takes no time to make."""
    return trusted_certificates() if needed else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy_for(parts: SplitResult) -> tuple[str, str | None]:
    """(the variable, the proxy's URL) for a server; ("", None) if it is reached directly."""
    host = parts.hostname or ""
    if is_this_machine(host) or _is_exception(host, parts.port):
        return "", None
    for lower in VARIABLES.get(parts.scheme, ()):
        name, value = _variable(lower, os.environ)
        if value:
            return name, _usable(name, value, parts)
    return "", None


def _usable(variable: str, value: str, parts: SplitResult) -> str:
    """The proxy's URL in the form that clients take; ``UserError`` if they cannot take it."""
    url = value if "://" in value else f"http://{value}"
    url = re.sub("^socks://", "socks5://", url)
    shown = repr(re.sub("//[^/]*@", "//***@", value))
    rest = f", or add {parts.hostname} to NO_PROXY" if parts.hostname else ""
    try:
        proxy = urlsplit(url)
        known = bool(proxy.hostname) and proxy.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        known = False
    if not known or proxy.scheme not in ("http", "https", "socks5", "socks5h"):
        raise UserError(
            f"{variable}: {shown} is not the address of a proxy that can be used here; an example is "
            f"http://proxy.example.com:3128. Correct or unset it{rest}"
        )
    package = SOCKS[parts.scheme]
    if proxy.scheme.startswith("socks") and find_spec(package) is None:
        raise UserError(
            f"{variable}: {shown} is a SOCKS proxy, for which the package {package.replace('_', '-')} is "
            f"missing; install it, or name an HTTP proxy, or unset the variable{rest}"
        )
    return url


def _is_exception(host: str, port: int | None) -> bool:
    """Whether ``NO_PROXY`` lists a host: by name, by a domain above it, by address or by network."""
    name, address = host.lower().rstrip("."), _address(host)
    for entry in _exceptions(os.environ):
        if entry == "*":
            return True
        at, separator, only = entry.rpartition(":")
        if separator and only.isdecimal() and (at.endswith("]") or ":" not in at):
            if int(only) != port:
                continue
            entry = at
        entry = _bare(entry)
        if address is not None:
            with suppress(ValueError):
                if address in ip_network(entry, strict=False):
                    return True
        elif entry and (name == entry or name.endswith(f".{entry}")):
            return True
    return False


def _exceptions(environment: Mapping[str, str]) -> list[str]:
    """The entries of ``NO_PROXY`` in lower case, without schemes."""
    listed = re.split(r"[,\s]+", _variable(EXCEPTIONS, environment)[1])
    return [entry.lower().rpartition("://")[2] for entry in listed if entry]


def _bare(entry: str) -> str:
    """An entry without brackets, without a port behind them, and without the mark for any subdomain."""
    return re.sub(r"^\[(.*)\](:\d+)?$", r"\1", entry).removeprefix("*").strip(".") or entry


def _variable(lower: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """(name, value) of a variable. As everywhere, the name in lower case comes first, even if it is empty."""
    name = lower if lower in environment else lower.upper()
    return name, environment.get(name, "").strip()


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """A host's address if it is written as one, also in short forms such as ``127.1``; None for a name."""
    with suppress(ValueError):
        return ip_address(host.strip("[]").partition("%")[0])
    with suppress(OSError):
        if re.fullmatch(r"[\d.]+|0x[\da-f]+", host):
            return IPv4Address(socket.inet_aton(host))
    return None


def _of_proxy(route: Route) -> ssl.SSLContext | None:
    """The context that checks an encrypted proxy's certificate; None for other proxies."""
    return route.certificates if (route.proxy or "").startswith("https:") else None
