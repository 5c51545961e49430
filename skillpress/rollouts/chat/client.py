"""One question to a chat-completions server, repeated until it is answered or its time is up.

A question that is lost, slow or answered with a failure is repeated after a growing pause. A server that
says how long to wait makes *all* requests wait that long. An error that no retry can fix (a wrong key, an
unknown model) ends the question at once. A parameter that the server refuses is omitted from then on, also
from open requests, since each attempt builds its request again. The token counts of every answer are written
to a file as soon as they arrive.

The key is read from the named environment variable, sent only to that server, and written nowhere: if an
error quotes it, it is replaced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from skillpress.core.engine import Sampling
from skillpress.core.seeds import derive
from skillpress.rollouts.chat.answers import parsed, read_reply
from skillpress.rollouts.chat.connection import NoReplyError, ServerConnection, ServerReply
from skillpress.rollouts.chat.form import LIMIT, STREAM, RequestForm
from skillpress.rollouts.chat.journal import Journal
from skillpress.rollouts.chat.outcomes import Failed, ModelAnswer, Unsupported, in_one_line, readable
from skillpress.rollouts.chat.question import Question
from skillpress.rollouts.chat.refusals import read_error
from skillpress.rollouts.chat.server import (
    ENDPOINT,
    ChatError,
    ChatServer,
    ConversationError,
    without_secrets,
)

Found = TypeVar("Found")

LEAST_PAUSE, FIRST_PAUSE, LONGEST_PAUSE = 0.1, 0.5, 30.0
"""The shortest pause before another attempt, the pause before the second attempt, and the longest pause, in
seconds. Pauses double with every attempt up to the longest. If the server names a pause, that one is used,
but never less than the shortest."""
SHARE_OF_DEADLINE = 1 / 3
"""The share of a request's time that one attempt may take; then the request is sent again."""
REACH_SECONDS = 20.0
"""A server that is running answers within this time."""
FOREIGN_ATTEMPTS = 3
"""After this many replies in another protocol, and no valid answer ever, the address is wrong."""
ANY = "any text"
"""A value for ``stop`` where only the parameter's name matters."""
TEMPLATE_TOKENS = 256
"""Tokens that a chat template may add to a prompt, whose own tokens are at most its bytes."""

TEMPLATE_FIELDS = ("chat_template", "chat_template_kwargs")
"""Fields of a user's own that decide how many tokens a prompt has."""


class ChatClient:
    """Asks one server; safe to use from many threads."""

    def __init__(self, server: ChatServer, sampling: Sampling, journal: Path) -> None:
        """Every answer's token counts are appended to the file ``journal``."""
        self.server, self._base, self._sampling = server, server.base, sampling
        self._journal, self._connection = Journal(journal), ServerConnection(server.base, server.headers)
        self._secrets = server.secrets
        self._form = RequestForm(frozenset(server.omit), stream=server.stream)
        self._context: int | None = None
        """The context length in tokens, if known and as long as the server counts tokens for us."""
        self._answered = False
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._not_before = 0.0  # on the monotonic clock; moved by the server's own pauses

    def meet(self, patiently: bool = False) -> None:
        """Check that the server is running, and read what it says about the model.

        Later requests are repeated until their deadline, because a server may be away for minutes in the
        middle of an evaluation. Before the first request, a wrong address is more likely.

        Args:
            patiently: wait as long as for any answer, for an address that has been used before.

        Raises:
            ChatError: no server answers, or the model's context has no room for the longest response.
        """
        offers_at = self._offers_in_time if patiently else self._offers_at
        offers = offers_at(self._base)
        if offers is None and urlsplit(self._base).path == "":
            offers = offers_at(f"{self._base}/v1")
            self._base += "/v1" * (offers is not None)
        for offer in offers or ():
            if offer.name == self.server.model or len(offers or ()) == 1:
                self._heard_of(offer)

    def served_model(self) -> str:
        """The name of the only model that the server offers; ``ChatError`` if there are several."""
        offers = self._until_answered("GET models", 0, self._ask_for_models)
        if len(offers) != 1:
            offered = in_one_line(", ".join(offer.name for offer in offers)) or "none"
            raise ChatError(f"{self.server.url}: serves {offered}; choose one with --name")
        return offers[0].name

    def ask(self, prompt: str, seed: int, what: str) -> ModelAnswer:
        """The answer, or ``ChatError``, where ``what`` names the request (``task 54=1,2,28,80, step 3``)."""
        return self.put(Question.of(readable(prompt)), seed, what)

    def put(self, question: Question, seed: int, what: str) -> ModelAnswer:
        """The answer to a conversation, otherwise as :meth:`ask`.

        Raises:
            ConversationError: the server refuses this conversation, and has answered others.
        """
        named = f"POST chat/completions ({what}, {question.characters} characters)"
        answer = self._until_answered(named, seed, lambda seconds: self._ask_once(question, seed, seconds))
        self._answered = True
        self._journal.answered(answer)
        return answer

    def reply(self, prompt: str, seed: int, what: str) -> str:
        """The text of an answer, empty if there is none; otherwise as :meth:`ask`."""
        return self.ask(prompt, seed, what).text

    def close(self) -> None:
        """Close the connections. Open requests fail and are not repeated."""
        self._closed.set()
        self._connection.close()

    def _offers_at(self, base: str) -> tuple[OfferedModel, ...] | None:
        try:
            return read_offers(self._connection.send("GET", f"{base}/models", None, REACH_SECONDS))
        except NoReplyError as error:
            raise ChatError(
                without_secrets(
                    f"--model: no server answers at {self.server.url} ({error}); is the address right, and "
                    "the server ready?",
                    self._secrets,
                )
            ) from error

    def _offers_in_time(self, base: str) -> tuple[OfferedModel, ...] | None:
        return read_offers(
            self._until_answered(
                "GET models", 0, lambda seconds: self._sent("GET", f"{base}/models", None, seconds)
            )
        )

    def _heard_of(self, offer: OfferedModel) -> None:
        longest = self._sampling.max_new_tokens
        if offer.context is not None and offer.context <= longest and not self._form.omits_limit:
            raise ChatError(
                f"{self.server.url}: the context of {offer.name} has {offer.context} tokens, and "
                f"max_new_tokens is {longest}; lower it, so that a prompt fits too"
            )
        self._context = offer.context
        self._form = replace(self._form, explicit=offer.own_defaults)

    def _ask_for_models(self, seconds: float) -> tuple[OfferedModel, ...] | Failed:
        reply = self._sent("GET", f"{self._base}/models", None, seconds)
        if isinstance(reply, Failed):
            return reply
        offers = read_offers(reply)
        if offers is not None:
            return offers
        outcome = read_error(reply, parsed(reply.body), {})
        if reply.status != 200 and isinstance(outcome, Failed):
            return outcome
        return Failed(f"HTTP {reply.status} without a list of models", foreign=True)

    def _ask_once(self, question: Question, seed: int, seconds: float) -> ModelAnswer | Failed:
        """One attempt, in the form that the server is currently known to accept."""
        longest = min(question.max_tokens or self._sampling.max_new_tokens, self._sampling.max_new_tokens)
        sampling = replace(self._sampling, max_new_tokens=longest)
        fields = self._form.fields(sampling, seed, question.stop)
        end = time.monotonic() + seconds
        if self._is_too_long(question, longest, seconds):
            return ModelAnswer("", ended="prompt_too_long")
        body = {"model": self.server.model, **question.body, **fields, **self.server.body}
        reply = self._sent("POST", f"{self._base}{ENDPOINT}", body, end - time.monotonic())
        sent = {name: value for name, value in fields.items() if name not in self.server.body}
        outcome = reply if isinstance(reply, Failed) else read_reply(reply, sent)
        return self._left_out(outcome) if isinstance(outcome, Unsupported) else outcome

    def _sent(
        self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float
    ) -> ServerReply | Failed:
        try:
            return self._connection.send(method, url, body, seconds)
        except NoReplyError as error:
            return Failed(str(error))

    def _left_out(self, refused: Unsupported) -> Failed:
        """Ask again without the parameter. Another request may have found the same in the meantime."""
        with self._lock:
            if refused.parameter in self._form.fields(self._sampling, 0, (ANY,)):
                form = self._form.without(refused.parameter)
                if form is None:
                    remedy = (
                        "leave --stream out"
                        if refused.parameter == STREAM
                        else f"--omit {LIMIT} leaves it out"
                    )
                    return Failed(f"{refused.reason}; {remedy}", again=False)
                self._form = form
                if refused.parameter in form.omitted:
                    self._journal.left_out(refused.parameter)
        return Failed(refused.reason, pause=0.0)

    def _is_too_long(self, question: Question, longest: int, seconds: float) -> bool:
        """Whether the server counts more tokens than its context can hold in addition to ``longest``.

        The server is asked only about prompts that could be too long, and never again once it has failed to
        answer.
        """
        context = self._context
        if context is None or self._form.omits_limit:
            return False
        room = context - longest
        if question.size + TEMPLATE_TOKENS <= room:
            return False
        body = {"model": self.server.model, **question.body, "add_generation_prompt": True}
        body |= {name: self.server.body[name] for name in TEMPLATE_FIELDS if name in self.server.body}
        reply = self._sent("POST", f"{self._base.removesuffix('/v1')}/tokenize", body, seconds)
        found = None if isinstance(reply, Failed) or reply.status != 200 else parsed(reply.body)
        tokens = found.get("count") if isinstance(found, Mapping) else None
        if not isinstance(tokens, int):
            self._context = None
            return False
        return tokens > room

    def _until_answered(self, what: str, seed: int, once: Callable[[float], Found | Failed]) -> Found:
        """The result of ``once``, given some seconds, after as many attempts as the deadline allows."""
        deadline = self.server.deadline_seconds
        end = time.monotonic() + deadline
        pause, foreign, last = 0.0, 0, "the server made other requests wait longer"
        for attempt in count(1):
            now = time.monotonic()
            with self._lock:
                pause = max(pause, self._not_before - now)
            if self._closed.is_set() or now + pause >= end:
                tries = attempt - 1
                raise self._error(
                    f"{what} was not answered within {deadline:g} s, in {tries} attempts; the last one: "
                    f"{last}"
                )
            self._closed.wait(pause)
            found = once(min(deadline * SHARE_OF_DEADLINE, end - time.monotonic()))
            if not isinstance(found, Failed):
                return found
            foreign = foreign + 1 if found.foreign else 0
            self._check(what, found, foreign)
            pause, last = self._pause(found, seed, attempt), found.reason
        raise AssertionError("the loop of attempts ended")

    def _check(self, what: str, failed: Failed, foreign: int) -> None:
        """Raise if another attempt would not help, given the number of foreign replies in a row."""
        if foreign >= FOREIGN_ATTEMPTS and not self._answered:
            raise self._error(
                f"answers, but not with a chat completion; is the address right? {failed.reason}"
            )
        if failed.again:
            return
        said = f"{what} was refused with {failed.reason}"
        if failed.conversation and self._answered:
            raise ConversationError(str(self._error(said)), self._told(failed.reason))
        remedy = ""
        if failed.denied:
            named = self.server.key_variable
            remedy = (
                f"; the key is that of the environment variable {named}"
                if named
                else "; put its key into an environment variable and name that with --key-variable"
            )
        elif own := [name for name in self.server.body if name in failed.reason]:
            remedy = f"; --body sends {', '.join(own)}"
        raise self._error(f"{said}{remedy}")

    def _pause(self, failed: Failed, seed: int, attempt: int) -> float:
        """Seconds before the next attempt. If the server's pause is for everyone, all requests wait."""
        if failed.pause is None:
            return backoff(seed, attempt)
        if failed.everyone:
            with self._lock:
                self._not_before = max(self._not_before, time.monotonic() + failed.pause)
        return max(failed.pause, LEAST_PAUSE)

    def _error(self, said: str) -> ChatError:
        return ChatError(self._told(f"{self.server.url}: {said}"))

    def _told(self, text: str) -> str:
        return without_secrets(text, self._secrets)


def backoff(seed: int, attempt: int) -> float:
    """Seconds before the next attempt, from the upper half of a range that doubles each time."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))
    return longest * (1 - derive(seed, "pause", attempt) % 1000 / 2000)


@dataclass(frozen=True)
class OfferedModel:
    """One model of a server."""

    name: str
    context: int | None
    """Tokens of a prompt and its response together, if the server states a limit (vLLM, SGLang)."""
    own_defaults: bool
    """Whether the server replaces sampling parameters that are not sent by those of the model's
    ``generation_config.json``, as vLLM and SGLang do."""


def read_offers(reply: ServerReply) -> tuple[OfferedModel, ...] | None:
    """The models of a server; None if the reply lists none."""
    found = parsed(reply.body)
    listed = found.get("data") if isinstance(found, Mapping) and reply.status == 200 else None
    if not isinstance(listed, list):
        return None
    models = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("id"), str)]
    return tuple(_offer(readable(model["id"]), model) for model in models)


def _offer(name: str, model: Mapping[str, object]) -> OfferedModel:
    context = model.get("max_model_len")
    stated = context if isinstance(context, int) and context > 1 else None  # True is an int too
    return OfferedModel(name, stated, stated is not None or model.get("owned_by") in ("vllm", "sglang"))
