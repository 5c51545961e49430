"""A server of the engine ``server`` to be killed: ``... PORT VERSION``.

It imports no torch, so it starts at once. What it answers is a hash of prompt and seed, so an answer is the
same whenever and wherever it is asked for; the weights are not looked at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NUMBERS = 50
"""Words of the tiny policy that are numbers; their ids begin at 2."""


def scripted(prompt: Sequence[int], seed: int, tokens: int) -> list[int]:
    """The token ids of a response."""
    asked = json.dumps([list(prompt), seed])
    return [2 + byte % NUMBERS for byte in blake2b(asked.encode()).digest()][:tokens]


class Server(ThreadingHTTPServer):
    """Remembers the name of its weights."""

    daemon_threads = True
    request_queue_size = 256
    weights_name = "none"


class Handler(BaseHTTPRequestHandler):
    """The calls of the protocol."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """What the server is."""
        facts: dict[str, dict[str, Any]] = {
            "/version": {"version": sys.argv[2]},
            "/v1/models": {"data": [{"id": "policy", "max_model_len": 28}]},
        }
        self._say(facts.get(self.path, {}))

    def do_POST(self) -> None:
        """A response, or a part of an update."""
        length = int(self.headers["Content-Length"] or 0)
        raw = self.rfile.read(length)
        if len(raw) < length:
            return  # the client has gone
        body = json.loads(raw or "{}")
        if self.path == "/finish_weight_update":
            self.server.weights_name = body["weight_version"]
        if self.path == "/inference/v1/generate":
            self._say(self._response(body))
        else:
            self._say({"results": ["float32"]} if self.path == "/collective_rpc" else {})

    def _response(self, body: dict[str, Any]) -> dict[str, Any]:
        wanted = body["sampling_params"]
        ids = scripted(body["token_ids"], wanted["seed"], wanted["max_tokens"])
        spans = [{"version": self.server.weights_name, "start": 0, "end": len(ids)}]
        logprobs = {"content": [{"logprob": -token / NUMBERS} for token in ids]}
        choice = {"token_ids": ids, "finish_reason": "length", "logprobs": logprobs, "weight_versions": spans}
        return {"choices": [choice]}

    def _say(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print("ready", flush=True)
    server.serve_forever()
