"""The slots of all machines, and their assignment to episodes.

An episode keeps its slot between its steps. If its machine is lost, it gets a slot of another one, and is
replayed there. Each process gets an equal share of the slots of every machine, so that processes never wait
for each other's slots.

There may be fewer slots than episodes, especially after a loss. Episodes then wait until others have ended.
An agent in lockstep would wait forever, since it decides for all episodes or for none. Its episodes therefore
take turns: a waiting episode gets the slot of an answered one, which is replayed when it continues.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from skillpress.core.errors import UserError
from skillpress.rollouts.remote.environment import RemoteEnvironment
from skillpress.rollouts.remote.slot import FullError, LostError, Offer, Slot

_LOG = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
"""Seconds after which a lost machine is tried again."""
FULL_SECONDS = 0.5
"""Seconds after which a machine without free slots is asked again."""
TURN_SECONDS = 0.05
"""An episode in lockstep waits this long for a free slot before it takes another episode's."""
NEVER = float("inf")


class WorkersLostError(RuntimeError):
    """No machine has played an episode in time; the message names each machine and why it did not."""


@dataclass(eq=False)
class _Machine:
    url: str
    share: int = 1
    """Number of slots that this process may use; 1 before the first contact with the machine."""
    taken: int = 0
    """Number of slots that it uses, including idle ones."""
    idle: list[Slot] = field(default_factory=list)
    """Open connections without an episode."""
    try_at: float = 0.0
    """Time from which the machine may be asked for another slot."""
    trouble: str = ""
    """Why the machine gave no slot when last asked, or why it was lost; empty if neither happened."""
    lost: bool = False
    """Whether ``trouble`` means that it does not answer."""
    about: str = ""
    """The machine's name and its log's place; empty before the first contact."""

    @property
    def told(self) -> str:
        """The machine's address, process and log, for messages."""
        return f"{self.url} ({self.about})" if self.about else self.url


class WorkersPool:
    """Makes environments that are played on other machines (``section.SharedEnvironments``)."""

    def __init__(
        self,
        urls: Sequence[str],
        key: str,
        *,
        played: Mapping[str, Any],
        packages: Collection[str],
        processes: int,
        lockstep: bool,
        strict: bool,
        wait_seconds: float,
    ) -> None:
        """Connect to all machines.

        Args:
            key: see ``slot.key_of_workers``. played: the facts that determine the contents of episodes here;
            each machine must have the same (``Offer``). packages: packages whose dataclasses the
            environment's states consist of. processes: number of processes that share the machines. lockstep:
            whether the agent decides for all episodes at once (``Agent.lockstep``). strict: whether a replay
            that differs is an error; see ``RemoteEnvironment``. wait_seconds: how long an episode waits for a
            slot.

        Raises:
            UserError: no machine answers; or one refuses the key, plays something else, or has fewer
                slots than there are processes.
        """
        self._key, self._played, self._packages = key, played, packages
        self._processes, self._lockstep, self.strict = processes, lockstep, strict
        self._machines = [_Machine(url) for url in urls]
        self._changed = threading.Condition()
        self._resting: dict[RemoteEnvironment, Slot] = {}
        """Slots of episodes between two steps, the last answered one last."""
        self._closed, self._short = False, False
        try:
            with ThreadPoolExecutor(len(urls)) as threads:
                answer_seconds = max(threads.map(self._meet, self._machines))
        except UserError:
            self.close()
            raise
        if not answer_seconds:
            reasons = "; ".join(f"{machine.url} {machine.trouble}" for machine in self._machines)
            raise UserError(
                f"workers.urls: no machine answers: {reasons}; start `skillpress serve-workers` on each"
            )
        self.patience = wait_seconds + answer_seconds
        """Maximum time of a start or a step on all machines together."""
        self.seconds = self.patience + answer_seconds
        """More than ``patience``, so that the environment itself reports which machine has not answered."""

    def __call__(self) -> RemoteEnvironment:
        """See ``SharedEnvironments``."""
        return RemoteEnvironment(self)

    def take(self, player: RemoteEnvironment, ends: float) -> tuple[Slot, bool]:
        """Get a slot, and whether it still holds the player's episode.

        Args:
            ends: time (``time.monotonic()``) until which it waits.

        Raises:
            WorkersLostError: no slot became free in time, or the pool is closed.
        """
        began = time.monotonic()
        while True:
            with self._changed:
                if player in self._resting:
                    return self._resting.pop(player), True
                slot = self._free(time.monotonic() - began)
                if slot is None:
                    self._wait(began, ends)
                    continue
            if isinstance(slot, Slot):
                return slot, False
            opened = self._open(slot)
            if opened is not None:
                return opened, False

    def rest(self, player: RemoteEnvironment, slot: Slot) -> None:
        """Keep the slot of an episode until its next step."""
        with self._changed:
            if not self._closed:
                self._resting[player] = slot
                self._changed.notify_all()
                return
        slot.close()

    def give_back(self, slot: Slot) -> None:
        """Give back a slot whose episode is over."""
        with self._changed:
            if not self._closed:
                self._of(slot).idle.append(slot)
                self._changed.notify_all()
                return
        slot.close()

    def leave(self, player: RemoteEnvironment) -> None:
        """Give back the slot of an episode that does not continue."""
        with self._changed:
            slot = self._resting.pop(player, None)
        if slot is not None:
            self.give_back(slot)

    def lose(self, slot: Slot, why: str) -> None:
        """A connection has ended, so its machine counts as lost for a moment, with all slots that are not
        waiting for an answer."""
        machine = self._of(slot)
        with self._changed:
            resting = [player for player, one in self._resting.items() if one.url == machine.url]
            closing = [slot, *machine.idle, *(self._resting.pop(player) for player in resting)]
            machine.idle = []
            machine.taken -= len(closing)
            self._suspect(machine, why)
        for one in closing:
            one.drop()

    def close(self) -> None:
        """Give all slots back. A thread that waits for one gets an error."""
        with self._changed:
            self._closed = True
            slots = [slot for machine in self._machines for slot in machine.idle]
            slots += self._resting.values()
            self._resting.clear()
            self._changed.notify_all()
        for slot in slots:
            slot.close()

    def _free(self, waited: float) -> Slot | _Machine | None:
        """A free slot, or a machine with room for a further one, which is then reserved; None if there is
        neither.
        """
        if self._closed:
            raise WorkersLostError("the workers are closed")
        now = time.monotonic()
        usable = [
            machine
            for machine in self._machines
            if machine.idle or (machine.taken < machine.share and now >= machine.try_at)
        ]
        if usable:
            machine = min(usable, key=lambda one: (one.taken - len(one.idle)) / one.share)
            if machine.idle:
                return machine.idle.pop()
            machine.taken += 1
            if machine.trouble:  # one connection tries whether it is there again
                machine.try_at = NEVER
            return machine
        if self._lockstep and self._resting and waited >= TURN_SECONDS:
            if not self._short:
                self._short = True
                _LOG.warning(
                    "workers: there are fewer slots than episodes, so episodes take turns and are replayed; "
                    "offer more "
                    "slots, or set a smaller sampling.slots"
                )
            return self._resting.popitem()[1]
        return None

    def _wait(self, began: float, ends: float) -> None:
        now = time.monotonic()
        if now >= ends:
            reasons = "; ".join(
                f"{machine.told} {machine.trouble or f'is used by {machine.taken} other episodes'}"
                for machine in self._machines
            )
            raise WorkersLostError(f"no slot became free within {now - began:.0f} seconds: {reasons}")
        tries = [machine.try_at - now for machine in self._machines if machine.taken < machine.share]
        turn = [began + TURN_SECONDS - now] if self._lockstep and self._resting else []
        self._changed.wait(max(0.001, min([ends - now, 1.0, *tries, *turn])))

    def _open(self, machine: _Machine) -> Slot | None:
        """Open a further slot of a machine; None if it offers none now."""
        try:
            slot = Slot(machine.url, self._key, self._packages)
            try:
                self._check(machine.url, slot.offer)
            except UserError:
                slot.close()
                raise
        except (FullError, LostError, UserError) as error:
            with self._changed:
                machine.taken -= 1
                if isinstance(error, FullError):
                    machine.trouble, machine.try_at = str(error), time.monotonic() + FULL_SECONDS
                else:
                    self._suspect(machine, str(error), for_good=isinstance(error, UserError))
            return None
        if machine.lost:
            _LOG.info("workers: %s answers again", machine.told)
        self._welcome(machine, slot.offer)
        return slot

    def _meet(self, machine: _Machine) -> float:
        """Open a first slot if one is free; return the maximum time of an answer, or 0 if the machine is
        lost.
        """
        try:
            slot = Slot(machine.url, self._key, self._packages)
        except FullError as error:
            self._check(machine.url, error.offer)
            machine.about, machine.trouble = error.offer.told, str(error)
            machine.try_at = time.monotonic() + FULL_SECONDS
            return error.offer.seconds
        except LostError as error:
            self._suspect(machine, str(error))
            return 0.0
        with self._changed:
            machine.taken = 1
        self.give_back(slot)
        self._check(machine.url, slot.offer)
        self._welcome(machine, slot.offer)
        return slot.offer.seconds

    def _check(self, url: str, offer: Offer) -> None:
        """Refuse a machine whose episodes would differ from those played here."""
        there = offer.played
        different = [
            name
            for name in dict.fromkeys([*self._played, *there])
            if self._played.get(name) != there.get(name)
        ]
        if different:
            first = different[0]
            more = f", and {len(different) - 1} more differ" if different[1:] else ""
            raise UserError(
                f"workers.urls: {url} ({offer.told}) does not match this process: {first} is "
                f"{there.get(first)!r} there and {self._played.get(first)!r} here{more}; start it with the "
                "same parameters, data and code"
            )
        if offer.slots < self._processes:
            raise UserError(
                f"workers.urls: {url} ({offer.told}) offers only {offer.slots} slots for {self._processes} "
                f"processes; start it with --slots {self._processes} or more"
            )

    def _welcome(self, machine: _Machine, offer: Offer) -> None:
        with self._changed:
            machine.share, machine.about = offer.slots // self._processes, offer.told
            machine.trouble, machine.lost, machine.try_at = "", False, 0.0
            self._changed.notify_all()

    def _suspect(self, machine: _Machine, why: str, for_good: bool = False) -> None:
        """Stop using a machine for a while, or for good; a loss is reported once."""
        with self._changed:
            if not machine.lost:
                then = "is not asked again" if for_good else f"is asked again every {RETRY_SECONDS:g} s"
                _LOG.warning(
                    "workers: %s is lost: %s; others play its episodes, and it %s", machine.told, why, then
                )
            machine.trouble, machine.lost = why, True
            machine.try_at = NEVER if for_good else time.monotonic() + RETRY_SECONDS
            self._changed.notify_all()

    def _of(self, slot: Slot) -> _Machine:
        return next(machine for machine in self._machines if machine.url == slot.url)
