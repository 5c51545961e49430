"""An endpoint, and a player that answers its requests from a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.requests import Asked, Reply
from skillpress.rollouts.programs.session import Session, Waiting

Script = Callable[[Asked], Reply]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    with Endpoint(tmp_path / "endpoint.sock") as made:
        yield made


@contextmanager
def played(endpoint: Endpoint, script: Script) -> Iterator[tuple[Session, list[Asked]]]:
    """An open episode whose requests a thread answers, and the list of what it was asked."""
    session, asked, over = endpoint.open(), list[Asked](), threading.Event()

    def answer() -> None:
        while not over.is_set():
            heard = session.next(0.05)
            if isinstance(heard, Waiting):
                asked.append(heard.asked)
                session.answer(heard, script(heard.asked))

    player = threading.Thread(target=answer)
    player.start()
    try:
        yield session, asked
    finally:
        over.set()
        player.join()
        endpoint.end(session)
