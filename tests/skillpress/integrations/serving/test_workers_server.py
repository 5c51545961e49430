"""What a machine with slots answers to clients that are not trainers, or behave badly."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import StepResult
from skillpress.rollouts.remote.slot import EnvironmentFailed, Full, Offer
from skillpress.rollouts.remote.values import read, written
from tests.support.integrations.served import Served
from tests.support.rollouts.machines import KEY, PLAYED, Counting, machine

OURS = ("skillpress",)
TASK = Task("t", "counting", 4, {})


def opened(server: Served, key: str = KEY, **headers: str) -> ClientConnection:
    url = server.url.replace("http", "ws") + "/slot"
    headers = {"Authorization": f"Bearer {key}"} | headers
    return connect(url, additional_headers=headers, proxy=None, close_timeout=2)


def said(connection: ClientConnection) -> object:
    return read(connection.recv(20), OURS)


def test_it_offers_itself_and_answers_questions_in_turn() -> None:
    with machine() as server, closing(opened(server)) as connection:
        offer = said(connection)
        assert isinstance(offer, Offer) and offer.played == PLAYED and offer.slots == 2
        connection.send(written(TASK))
        connection.send(written("add"))
        first, second = said(connection), said(connection)
        assert isinstance(first, StepResult) and isinstance(second, StepResult)
        assert (first.observation, second.observation) == ("4", "7")


@pytest.mark.parametrize("key", ["", KEY[:-1], f"{KEY}x", "Ünbekannt"])
def test_without_its_key_nothing_is_said(key: str) -> None:
    with machine() as server, pytest.raises(InvalidStatus) as refused:
        opened(server, key)
    assert refused.value.response.status_code == 401


def test_a_web_page_is_refused_even_if_it_has_the_key() -> None:
    with machine() as server, pytest.raises(InvalidStatus) as refused:
        opened(server, Origin="http://evil.example")
    assert refused.value.response.status_code == 403


def test_a_further_client_hears_at_once_that_all_slots_are_taken_and_gets_one_when_it_is_free() -> None:
    with machine(slots=1) as server:
        first = opened(server)
        said(first)
        began = time.monotonic()
        with closing(opened(server)) as second:
            full = said(second)
            assert isinstance(full, Full) and full.offer.slots == 1 and time.monotonic() - began < 2
        first.close()
        for _ in range(100):
            with closing(opened(server)) as third:
                if isinstance(said(third), Offer):
                    return
        raise AssertionError("the slot stays taken")


@pytest.mark.parametrize(
    "question",
    [
        b"\x80\x04bytes of a pickle",
        "no json",
        written(("add",)),
        written(Info()),
        '{"class": "os:_Environ", "fields": {}}',
        '{"class": "skillpress.core.trajectory:Task", "fields": {}}',
    ],
    ids=["bytes", "text", "tuple", "facts", "foreign class", "no task"],
)
def test_anything_but_a_question_ends_the_connection(question: str | bytes) -> None:
    with machine() as server, closing(opened(server)) as connection:
        said(connection)
        connection.send(question)
        with pytest.raises(ConnectionClosed) as ended:
            connection.recv(20)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 1002


def test_an_action_without_an_episode_fails_and_a_task_then_starts() -> None:
    with machine() as server, closing(opened(server)) as connection:
        said(connection)
        connection.send(written("add"))
        assert isinstance(said(connection), EnvironmentFailed)
        connection.send(written(TASK))
        assert isinstance(said(connection), StepResult)


def test_a_silent_client_loses_its_slot() -> None:
    with machine(slots=1, idle_seconds=0.2) as server, closing(opened(server)) as connection:
        said(connection)
        with pytest.raises(ConnectionClosed, match=r"nothing was asked for 0\.2 seconds"):
            connection.recv(20)


class Stateful(Counting):
    """Shows a state that no message can carry."""

    def _info(self) -> Info:
        return Info(state=open)


def test_a_state_that_cannot_travel_is_named() -> None:
    with machine(make=Stateful) as server, closing(opened(server)) as connection:
        said(connection)
        connection.send(written(TASK))
        failed = said(connection)
        assert isinstance(failed, EnvironmentFailed) and "cannot be sent to another machine" in failed.why
