"""A small server that speaks the protocol of engine ``server``, with a real policy behind it.

It samples with the local engine, fetches weights over HTTP, and can be made to fail as real servers do.
``make test-vllm`` tests vLLM's own servers.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import torch

from skillpress.core.engine import Completion, Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.link import Link
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.parts import TransferManifest, fetch, fetch_manifest
from skillpress.models.engines.server import VLLM
from skillpress.models.policy import Policy

Answer = dict[str, Any]


class ProtocolServer(ThreadingHTTPServer):
    """A context manager; it answers as soon as it is entered."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, policy: Policy, longest: int = 64, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.engine, self.longest = LocalEngine(policy), longest
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.weights_name = "those of its start"
        self.vllm = f"{VLLM}+cpu"
        self.dtype = str(policy.model.dtype).removeprefix("torch.")
        """The type that it reports."""
        self.lock = threading.Lock()
        self.asked: list[str] = []
        """Ids of all received requests, including unanswered ones."""
        self.seeds: list[int | None] = []
        """Their seeds; a request without one is sampled with its number."""
        self.slowness = 0.0
        self.change: Callable[[Answer], Answer] = lambda answer: answer
        """Corrupts an answer."""
        self.before_answer: Callable[[ProtocolServer], None] = lambda server: None
        self.joins = True
        """Whether it joins the learner's group."""
        self.link: Link | None = None
        self.transfers: list[str] = []
        """How each update has come."""
        self.before_stage: Callable[[ProtocolServer], None] = lambda server: None
        self.between_tokens: Callable[[ProtocolServer, int], None] | None = None
        """If it is set, every token is drawn by the newest weights, as vLLM does after a pause in mode
        ``keep``; it is called before each token with the number of those drawn."""
        self._staged: dict[str, Any] = {}
        self._connections: list[Any] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.die()

    def die(self) -> None:
        """Behave like a killed process: its connections break, and its port refuses."""
        self.shutdown()
        self.server_close()
        for connection in self._connections:
            try:
                connection.shutdown(2)
            except OSError:  # closed already
                continue

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that it can be broken."""
        self._connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client left or the server died; print nothing."""

    def generate(self, body: dict[str, Any]) -> Answer:
        """/inference/v1/generate."""
        self.asked.append(body["request_id"])
        self.before_answer(self)
        time.sleep(self.slowness)
        asked = body["sampling_params"]
        sampling = Sampling(asked["temperature"], asked["top_p"], asked["top_k"], asked["max_tokens"])
        self.seeds.append(asked.get("seed"))
        prompt, seed = tuple(body["token_ids"]), asked.get("seed", len(self.seeds))
        if self.between_tokens is not None:
            pieces = self._token_by_token(prompt, sampling, seed, self.between_tokens)
        else:
            pieces = [self._sample(prompt, sampling, seed)]
        tokens = [token for _, piece in pieces for token in piece.token_ids]
        logprobs = [value for _, piece in pieces for value in piece.logprobs.tolist()]
        names = [name for name, piece in pieces for _ in piece.token_ids]
        edges = [0, *(n for n in range(1, len(names)) if names[n] != names[n - 1]), len(names)]
        choice = {
            "token_ids": tokens,
            "finish_reason": pieces[-1][1].finish_reason,
            "logprobs": {"content": [{"logprob": value} for value in logprobs]},
            "weight_versions": [
                {"version": names[start], "start": start, "end": end}
                for start, end in itertools.pairwise(edges)
            ],
        }
        return self.change({"choices": [choice]})

    def _sample(self, prompt: TokenIds, sampling: Sampling, seed: int) -> tuple[str, Completion]:
        """(name of the weights, what they drew)."""
        with self.lock:
            (sampled,) = self.engine.generate([prompt], sampling, [seed])
            return self.weights_name, sampled

    def _token_by_token(
        self, prompt: TokenIds, sampling: Sampling, seed: int, before: Callable[[ProtocolServer, int], None]
    ) -> list[tuple[str, Completion]]:
        pieces: list[tuple[str, Completion]] = []
        while len(pieces) < sampling.max_new_tokens:
            before(self, len(pieces))
            pieces.append(self._sample(prompt, replace(sampling, max_new_tokens=1), seed + len(pieces)))
            prompt += pieces[-1][1].token_ids
            if pieces[-1][1].finish_reason == "stop":
                break
        return pieces

    def stage(self, body: dict[str, Any]) -> Answer:
        """/update_weights."""
        self.before_stage(self)
        expected = {name: value.shape for name, value in self.engine.model.state_dict().items()}

        def accept(manifest: TransferManifest) -> None:
            if {name: place.shape for name, place in manifest.places.items()} != expected:
                raise ValueError("the weights are another model's")

        update = body["update_info"]
        if update.get("collective"):
            if self.link is None:
                raise ValueError("this worker does not belong to a group with the learner")
            manifest = fetch_manifest(update["url"], 10.0)
            accept(manifest)
            self._staged = self.link.receive(manifest)
        else:
            self._staged = fetch(update["url"], 10.0, accept)
        self.transfers.append("collective" if update.get("collective") else "http")
        return {}

    def join(self, body: dict[str, Any]) -> Answer:
        """/init_weight_transfer_engine."""
        info = body["init_info"]
        if info:
            if not self.joins:
                raise ValueError("no collective connects them")
            self.link = Link.to(
                info["host"], info["port"], 1, info["size"], torch.device(info["device"]), info["seconds"]
            )
        return {}

    def apply(self, body: dict[str, Any]) -> Answer:
        """/finish_weight_update."""
        with self.lock:
            self.engine.update_weights(self._staged, 0)
            self.weights_name = body["weight_version"]
        return {}


class _Handler(BaseHTTPRequestHandler):
    server: ProtocolServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is written in two pieces, and the second would wait 40 ms

    def do_GET(self) -> None:
        answers: dict[str, Answer] = {
            "/version": {"version": self.server.vllm},
            "/get_world_size": {"world_size": 1},
            "/v1/models": {"data": [{"id": "policy", "max_model_len": self.server.longest}]},
        }
        self._answer(200, answers.get(self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
        does: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "/inference/v1/generate": self.server.generate,
            "/init_weight_transfer_engine": self.server.join,
            "/update_weights": self.server.stage,
            "/finish_weight_update": self.server.apply,
            "/collective_rpc": lambda body: {"results": [self.server.dtype]},
        }
        try:
            answer = does[self.path](body) if self.path in does else {}
        except (OSError, ValueError) as error:
            self._answer(500, {"error": str(error)})
            return
        self._answer(200, answer)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
