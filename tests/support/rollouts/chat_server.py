"""A small HTTP server that speaks the chat-completions protocol and plays text games by a fixed rule."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Trouble = Callable[[int], tuple[int, dict[str, str], dict[str, Any] | str] | float | None]
"""Maps the number of a request, from 1, to an answer (status, headers, body), seconds of silence, or None."""
Manner = Callable[[int, dict[str, Any], dict[str, Any]], "Sent"]
"""Maps (number of a request, its body, a good server's completion) to the data that this server sends: a
completion, an answer (status, headers, body), or raw bytes, piece by piece, after which the connection
ends."""
Answered = tuple[int, dict[str, str], Any]
"""An answer: status, headers, body."""
Sent = dict[str, Any] | Answered | Iterable[bytes]


@dataclass
class Heard:
    """The requests that the server received."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """Headers of each question, with names in lower case."""
    times: list[float] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    """Maximum number of concurrent requests."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def keys(self) -> list[str]:
        """The key sent with each question."""
        return [headers.get("authorization", "") for headers in self.headers]


def first_choice(prompt: str) -> str:
    """The first action listed in the prompt, in the tags that the prompt asks for."""
    action = re.search(r"take now: \['([^']+)'", prompt)
    return f"<think>The first.</think><action>{action[1] if action else ''}</action>"


@contextmanager
def chat_server(
    trouble: Trouble = lambda number: None,
    models: tuple[str, ...] = ("toy",),
    port: int = 0,
    answer: Callable[[str], str] = first_choice,
    manner: Manner = lambda number, body, good: good,
    listed: Callable[[str], Sent | None] = lambda path: None,
    tokens: Callable[[str], int] | None = None,
) -> Iterator[tuple[str, Heard]]:
    """(base URL, received requests) of a server on this machine, which ends with the block.

    Args:
        listed: answers a GET of this path in place of the models.
        tokens: the number of tokens of a prompt, for servers with ``/tokenize``.
    """
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            heard.headers.append(self._headers())
            offered = {"object": "list", "data": [{"id": name, "object": "model"} for name in models]}
            self._put(listed(self.path) or offered)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if tokens is not None and self.path == "/tokenize":
                self._send(200, {}, {"count": tokens(body["messages"][0]["content"])})
                return
            if self.path != "/v1/chat/completions":
                self._send(404, {}, {"detail": "Not Found"})
                return
            with heard.lock:
                heard.bodies.append(body)
                heard.headers.append(self._headers())
                heard.times.append(time.monotonic())
                number = len(heard.bodies)
                heard.busy += 1
                heard.busiest = max(heard.busiest, heard.busy)
            try:
                self._answer(number, body)
            finally:
                with heard.lock:
                    heard.busy -= 1

        def _headers(self) -> dict[str, str]:
            return {name.lower(): value for name, value in self.headers.items()}

        def _answer(self, number: int, body: dict[str, Any]) -> None:
            wrong = trouble(number)
            if isinstance(wrong, tuple):
                self._send(*wrong)
                return
            time.sleep(wrong or 0)
            text = answer(body["messages"][0]["content"])
            message = {"role": "assistant", "content": text}
            said = {
                "id": f"c{number}", "object": "chat.completion", "created": 0, "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
            }  # fmt: skip
            self._put(manner(number, body, said))

        def _put(self, sent: Sent) -> None:
            if isinstance(sent, dict):
                self._send(200, {}, sent)
            elif isinstance(sent, tuple):
                self._send(*sent)
            else:
                self.close_connection = True
                with suppress(OSError):  # the client's deadline has passed
                    for piece in sent:
                        self.wfile.write(piece)

        def _send(self, status: int, headers: dict[str, str], body: object) -> None:
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # the client's deadline has passed
                self.close_connection = True

        def log_message(self, *said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", heard
    finally:
        server.shutdown()
        server.server_close()
