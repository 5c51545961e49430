"""One question to a chat-completions server, asked until it is answered or its time is up.

What is lost on the way, slow, or answered with a failure is asked again after a growing pause; a server
that says how long to wait makes *all* requests wait for so long; what no retry can help (a wrong key, an
unknown model) ends at once. A parameter that the server refuses is left out from then on: by the requests
that were under way too, since each is written again for every attempt. Every answer's tokens are written to
a file as soon as they are counted.

The key is read from the environment variable that is named, sent to that server alone, and written nowhere:
an error that quotes it has it blotted out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from skillpress.core.engine import Sampling
from skillpress.core.seeds import derive
from skillpress.play.chat.answers import parsed, read_reply
from skillpress.play.chat.connection import Connection, LostError, Reply
from skillpress.play.chat.form import LIMIT, Form
from skillpress.play.chat.journal import Journal
from skillpress.play.chat.offers import Offer, read_offers
from skillpress.play.chat.outcomes import Answer, Failed, Unsupported, in_one_line, readable
from skillpress.play.chat.refusals import read_error
from skillpress.play.chat.server import ENDPOINT, ChatError, ChatServer

Found = TypeVar("Found")

LEAST_PAUSE, FIRST_PAUSE, LONGEST_PAUSE = 0.1, 0.5, 30.0
"""Seconds before the second attempt, which double with every further one, up to the longest; where the server
says how long, that, but never less than the least."""
SHARE_OF_DEADLINE = 1 / 3
"""The share of a request's time that one attempt may take; then the request is sent again."""
REACH_SECONDS = 20.0
"""A server that is there answers anything within it."""
FOREIGN_ATTEMPTS = 3
"""After so many replies that do not belong to the protocol, and no answer ever, the address is wrong."""
TEMPLATE_TOKENS = 256
"""Tokens that a chat template adds to a prompt, at most. No prompt has more tokens than bytes beside them."""


class ChatClient:
    """Asks one server; safe to use from many threads."""

    def __init__(self, server: ChatServer, sampling: Sampling, journal: Path) -> None:
        """
        Args:
            journal: file to which every answer's tokens are appended.
        """
        self.server, self._base, self._sampling = server, server.base, sampling
        self._journal, self._connection = Journal(journal), Connection(server.headers)
        self._form = Form(frozenset(server.omit))
        self._context: int | None = None
        """Where known, and as long as the server counts tokens for us."""
        self._answered = False
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._not_before = 0.0  # on the monotonic clock; moved by the server's own pauses

    def meet(self, patiently: bool = False) -> None:
        """Find out whether a server is there, and what it says of the model.

        Requests are repeated until their deadline, because a server may be away for minutes in the middle of
        an evaluation. Before the first one a wrong address is the likelier reason.

        Args:
            patiently: wait for it as for any answer, where this is not the first use of the address.

        Raises:
            ChatError: nobody answers, or the model's context has no room for the longest response.
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
        """The one model that the server offers.

        Raises:
            ChatError: it offers several, or cannot be asked.
        """
        offers = self._until_answered("GET models", 0, self._ask_for_models)
        if len(offers) != 1:
            offered = in_one_line(", ".join(offer.name for offer in offers)) or "none"
            raise ChatError(f"{self.server.url}: serves {offered}; choose one with --name")
        return offers[0].name

    def ask(self, prompt: str, seed: int, what: str) -> Answer:
        """The model's answer to a prompt.

        Args:
            what: names the request in errors, such as ``task 54=1,2,28,80, step 3``.

        Raises:
            ChatError: the server refused, or did not answer within ``deadline_seconds``.
        """
        prompt = readable(prompt)
        named = f"POST chat/completions ({what}, {len(prompt)} characters)"
        answer = self._until_answered(named, seed, lambda seconds: self._ask_once(prompt, seed, seconds))
        self._answered = True
        self._journal.answered(answer)
        return answer

    def reply(self, prompt: str, seed: int, what: str) -> str:
        """The text of an answer; empty where there is none, as for a prompt that is too long.

        Raises:
            ChatError: as :meth:`ask`.
        """
        return self.ask(prompt, seed, what).text

    def close(self) -> None:
        """End the connections; requests under way fail and are not repeated."""
        self._closed.set()
        self._connection.close()

    def _offers_at(self, base: str) -> tuple[Offer, ...] | None:
        try:
            return read_offers(self._connection.send("GET", f"{base}/models", None, REACH_SECONDS))
        except LostError as error:
            raise ChatError(
                self.server.without_secrets(
                    f"--model: nobody answers at {self.server.url} ({error}); is the address right, and the "
                    "server ready?"
                )
            ) from error

    def _offers_in_time(self, base: str) -> tuple[Offer, ...] | None:
        return read_offers(
            self._until_answered(
                "GET models", 0, lambda seconds: self._sent("GET", f"{base}/models", None, seconds)
            )
        )

    def _heard_of(self, offer: Offer) -> None:
        longest = self._sampling.max_new_tokens
        if offer.context is not None and offer.context <= longest and not self._form.omits_limit:
            raise ChatError(
                f"{self.server.url}: the context of {offer.name} has {offer.context} tokens, and "
                f"max_new_tokens is {longest}; set it lower, so that there is room for a prompt"
            )
        self._context = offer.context
        self._form = replace(self._form, explicit=offer.own_defaults)

    def _ask_for_models(self, seconds: float) -> tuple[Offer, ...] | Failed:
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

    def _ask_once(self, prompt: str, seed: int, seconds: float) -> Answer | Failed:
        """One attempt, in the form that the server is known to take by now."""
        fields = self._form.fields(self._sampling, seed)
        messages, end = [{"role": "user", "content": prompt}], time.monotonic() + seconds
        if self._is_too_long(prompt, messages, seconds):
            return Answer("", ended="prompt_too_long")
        body = {"model": self.server.model, "messages": messages, **fields}
        reply = self._sent("POST", f"{self._base}{ENDPOINT}", body, end - time.monotonic())
        outcome = reply if isinstance(reply, Failed) else read_reply(reply, fields)
        return self._left_out(outcome) if isinstance(outcome, Unsupported) else outcome

    def _sent(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> Reply | Failed:
        try:
            return self._connection.send(method, url, body, seconds)
        except LostError as error:
            return Failed(str(error))

    def _left_out(self, refused: Unsupported) -> Failed:
        """Ask again without the parameter; another request may have learned the same meanwhile."""
        with self._lock:
            if refused.parameter in self._form.fields(self._sampling, 0):
                form = self._form.without(refused.parameter)
                if form is None:
                    return Failed(f"{refused.reason}; --omit {LIMIT} leaves it out", again=False)
                self._form = form
                if refused.parameter in form.omitted:
                    self._journal.left_out(refused.parameter)
        return Failed(refused.reason, pause=0.0)

    def _is_too_long(self, prompt: str, messages: list[dict[str, str]], seconds: float) -> bool:
        """Whether the server counts more tokens than its context has room for.

        It is asked only about prompts that could be too long, and never again after it has not answered.
        """
        context = self._context
        if context is None or self._form.omits_limit:
            return False
        room = context - self._sampling.max_new_tokens
        if len(prompt.encode()) + TEMPLATE_TOKENS <= room:
            return False
        body = {"model": self.server.model, "messages": messages, "add_generation_prompt": True}
        reply = self._sent("POST", f"{self._base.removesuffix('/v1')}/tokenize", body, seconds)
        found = None if isinstance(reply, Failed) or reply.status != 200 else parsed(reply.body)
        tokens = found.get("count") if isinstance(found, Mapping) else None
        if not isinstance(tokens, int):
            self._context = None
            return False
        return tokens > room

    def _until_answered(self, what: str, seed: int, once: Callable[[float], Found | Failed]) -> Found:
        """What ``once`` gives in so many seconds, after as many attempts as the deadline has room for."""
        deadline = self.server.deadline_seconds
        end = time.monotonic() + deadline
        pause, foreign, last = 0.0, 0, "the server told other requests to wait for longer"
        for attempt in count(1):
            now = time.monotonic()
            with self._lock:
                pause = max(pause, self._not_before - now)
            if self._closed.is_set() or now + pause >= end:
                tries = attempt - 1
                raise self._error(
                    f"{what} was not answered within {deadline:g} s, in {tries} attempts; the last: {last}"
                )
            self._closed.wait(pause)
            found = once(min(deadline * SHARE_OF_DEADLINE, end - time.monotonic()))
            if not isinstance(found, Failed):
                return found
            foreign = foreign + 1 if found.foreign else 0
            self._check(what, found, foreign)
            pause, last = self._pause(found, seed, attempt), found.reason
        raise AssertionError("attempts have no end")

    def _check(self, what: str, failed: Failed, foreign: int) -> None:
        """Raise where another attempt would not help, after so many foreign replies in a row."""
        if foreign >= FOREIGN_ATTEMPTS and not self._answered:
            raise self._error(f"answers, but with no chat completion; is the address right? {failed.reason}")
        if failed.again:
            return
        remedy = ""
        if failed.denied:
            named = self.server.key_variable
            remedy = (
                f"; the key is that of the environment variable {named}"
                if named
                else "; put its key into an environment variable and name that with --key-variable"
            )
        raise self._error(f"{what} was refused with {failed.reason}{remedy}")

    def _pause(self, failed: Failed, seed: int, attempt: int) -> float:
        """Seconds before the next attempt; all requests wait where the server means all."""
        if failed.pause is None:
            return backoff(seed, attempt)
        if failed.everyone:
            with self._lock:
                self._not_before = max(self._not_before, time.monotonic() + failed.pause)
        return max(failed.pause, LEAST_PAUSE)

    def _error(self, said: str) -> ChatError:
        return ChatError(self.server.without_secrets(f"{self.server.url}: {said}"))


def backoff(seed: int, attempt: int) -> float:
    """Seconds before the next attempt: doubled each time, drawn from the upper half of that."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))
    return longest * (1 - derive(seed, "pause", attempt) % 1000 / 2000)
