"""Episodes on other machines: the same as here, at most as many as there are slots, and none is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing

import pytest

from benchmarks.workers import Timed
from skillpress.core.errors import UserError
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task, Trajectory
from skillpress.rollouts.agents.explorer import RandomExplorer
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.remote import pool as pools
from skillpress.rollouts.remote import slot as slots
from skillpress.rollouts.remote.environment import RemoteEnvironment
from skillpress.rollouts.remote.pool import WorkersLostError, WorkersPool
from skillpress.rollouts.remote.slot import FailedError
from tests.support.rollouts.machines import STEPS, Counting, machine, pool_of

TASKS = [Task(f"t{number}", "counting", number, {}) for number in range(30)]
ACTIONS = ("add", "wait 0.01", "add")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    Counting.forget()
    monkeypatch.setattr(pools, "RETRY_SECONDS", 0.2)
    caplog.set_level(logging.INFO, "skillpress")


def played(pool: WorkersPool | None, in_rounds: bool = False, slots: int = 6) -> Sequence[Trajectory]:
    """The episodes of a random agent, in ``slots`` at once; here without a pool."""
    explorer = RandomExplorer(lambda info: info.admissible, OutcomeReward(success=1.0, invalid_penalty=0.0))
    environments = ThreadVectorEnv(Counting) if pool is None else ThreadVectorEnv(pool, 60.0, pool.close)
    with Collector(environments, Timed(explorer) if in_rounds else explorer, slots) as collector:
        return collector.collect(requests(TASKS, 1, 0, "test"))


def totals(environment: RemoteEnvironment, actions: Sequence[str] = ACTIONS) -> list[str]:
    return [environment.step(action)[0] for action in actions]


def test_episodes_on_two_machines_are_those_played_here() -> None:
    here = played(None)
    with machine() as first, machine() as second:
        assert played(pool_of(first.url, second.url)) == here


def test_no_more_episodes_are_in_flight_than_there_are_slots_and_a_machine_may_be_shared() -> None:
    with machine(slots=4) as only, closing(pool_of(only.url, processes=2)) as other:
        taken = [other() for _ in range(2)]
        for environment in taken:
            environment.reset(TASKS[0])
        assert len(played(pool_of(only.url, processes=2))) == len(TASKS)
        assert Counting.most_at_once == 4, "two of this process, two of the other"


@pytest.mark.parametrize("in_rounds", [False, True], ids=["an agent that goes on", "an agent in lockstep"])
def test_a_machine_that_is_lost_loses_no_episode(in_rounds: bool, caplog: pytest.LogCaptureFixture) -> None:
    here = played(None)
    with machine() as stays, ExitStack() as stack:
        lost = stack.enter_context(machine())
        pool = pool_of(stays.url, lost.url, lockstep=in_rounds)
        ending = threading.Timer(0.15, stack.close)
        ending.start()
        assert played(pool, in_rounds) == here
        ending.join()
    said = [record.getMessage() for record in caplog.records if "is lost" in record.getMessage()]
    assert len(said) == 1 and f"{lost.url} (machine toy, whose log is /var/log/toy.log) is lost" in said[0]


def test_a_lost_episode_is_replayed_action_by_action_and_a_machine_that_is_back_plays_again() -> None:
    with machine(slots=1) as server, closing(pool_of(server.url)) as pool:
        environment = pool()
        environment.reset(TASKS[5])
        before = totals(environment, ACTIONS[:2])
        server.cut()
        assert [*before, *totals(environment, ACTIONS[2:])] == ["8", "17", "20"]
    assert Counting.actions == [*ACTIONS[:2], *ACTIONS]


def test_an_agent_in_lockstep_plays_more_episodes_than_there_are_slots(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = played(None)
    with machine(slots=2) as only:
        assert played(pool_of(only.url, lockstep=True), in_rounds=True) == here
    assert Counting.most_at_once <= 6, "those of the local pool"
    assert len([record for record in caplog.records if "fewer slots than episodes" in record.message]) == 1


def test_an_episode_that_gets_no_slot_says_who_has_none() -> None:
    with machine(slots=1) as only, closing(pool_of(only.url, wait_seconds=0.5)) as pool:
        pool.patience = 0.5
        first, second = pool(), pool()
        first.reset(TASKS[0])
        began = time.monotonic()
        with pytest.raises(
            WorkersLostError, match=rf"no slot .* within \d+ seconds: {only.url} .*is used by 1"
        ):
            second.reset(TASKS[1])
        assert time.monotonic() - began < 5
        first.close()
        assert second.reset(TASKS[1])[0] == "1", "its slot is free now"


def test_an_episode_waits_for_the_slot_of_another_trainer_and_an_error_names_the_full_machine() -> None:
    with machine(slots=1) as only, closing(pool_of(only.url)) as other, closing(pool_of(only.url)) as mine:
        mine.patience = 0.7
        with pytest.raises(WorkersLostError, match=rf"{only.url} .* has 1 slots, and all are taken"):
            mine().reset(TASKS[1])
        other.close()
        mine.patience = 20.0
        assert mine().reset(TASKS[1])[0] == "1"


def test_a_machine_that_stops_answering_is_lost_within_seconds_however_long_answers_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "PING_SECONDS", 0.2)
    monkeypatch.setattr(slots, "PONG_SECONDS", 0.4)
    with machine(slots=1) as server, closing(pool_of(server.url)) as pool:
        environment = pool()
        environment.reset(TASKS[0])
        assert environment.step("wait 1.5")[0] == "8", "busy, and it answers pings"
        assert Counting.actions == ["wait 1.5"]
        loop = next(iter(server.server.server_state.connections)).loop
        loop.call_soon_threadsafe(time.sleep, 1.5)  # like a machine that stands still
        began = time.monotonic()
        assert environment.step("add")[0] == "11"
        assert time.monotonic() - began < 10
    assert Counting.actions.count("wait 1.5") == 2, "replayed"


def test_an_environment_that_fails_names_its_machine_and_leaves_the_slot_usable() -> None:
    with machine(slots=1) as server, closing(pool_of(server.url)) as pool:
        environment = pool()
        environment.reset(TASKS[0])
        with pytest.raises(FailedError, match=rf"{server.url} \(machine toy.*the room fell down"):
            environment.step("break")
        environment.reset(TASKS[1])
        assert len(totals(environment)) == STEPS


class Forgetful(Counting):
    """Adds another number in every episode."""

    episodes = 0

    def reset(self, task: Task) -> tuple[str, Info]:
        Forgetful.episodes += 1
        super().reset(task)
        self.total = Forgetful.episodes
        return str(self.total), self._info()


@pytest.mark.parametrize("strict", [True, False])
def test_a_replay_that_differs_is_an_error_or_a_warning(
    strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with machine(1, Forgetful) as server, closing(pool_of(server.url, strict=strict)) as pool:
        environment = pool()
        environment.reset(TASKS[0])
        environment.step("add")
        server.cut()
        if strict:
            with pytest.raises(FailedError, match=r"t0 replayed on .* differs after 1 actions"):
                environment.step("add")
        else:
            environment.step("add")
            assert "differs after 1 actions" in caplog.text


def test_a_wrong_key_is_refused_and_not_repeated() -> None:
    with (
        machine() as server,
        pytest.raises(UserError, match=r"SKILLPRESS_WORKERS_KEY: .* refuses this key") as found,
    ):
        pool_of(server.url, key="another-key-of-many-letters")
    assert "another-key" not in str(found.value)


def test_a_machine_with_other_parameters_data_or_code_is_refused() -> None:
    mine = {"environment.max_steps": 3, "the code": "ab"}
    with machine(played={"environment.max_steps": 5, "the code": "cd"}) as server:
        with pytest.raises(
            UserError, match=r"environment.max_steps is 5 there and 3 here, and 1 more differ; start it with"
        ):
            pool_of(server.url, played=mine)
        assert pool_of(server.url, played={"environment.max_steps": 5, "the code": "cd"}).close() is None


def test_a_machine_with_fewer_slots_than_processes_is_refused() -> None:
    with machine(slots=2) as server, pytest.raises(UserError, match="offers only 2 slots for 3 processes"):
        pool_of(server.url, processes=3)


def test_a_missing_machine_is_reported_and_the_others_play(caplog: pytest.LogCaptureFixture) -> None:
    with machine() as there, machine() as gone:
        pass
    with machine() as there, closing(pool_of(there.url, gone.url)) as pool:
        environment = pool()
        environment.reset(TASKS[0])
        assert len(totals(environment)) == STEPS
        assert f"{gone.url} is lost: cannot be reached" in caplog.text
    with pytest.raises(UserError, match=f"no machine answers: {gone.url} cannot be reached"):
        pool_of(gone.url)
